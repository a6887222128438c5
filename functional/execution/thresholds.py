"""Figures that decide whether a program is compiled, runs op by op, or runs by NumPy.

They weigh times measured on 2 CPU cores (benchmarks/decisions.md) and change no number that is
computed. Times are in milliseconds.
"""

# Compiling.
COMPILE_OP_MS = 25.0  # one op alone
TRACE_OP_MS = 5.0  # one op on few elements, which NumPy computes and nothing compiles
COMPILE_MODEL_MS = 100.0  # a small model, or its gradient
COMPILE_PROGRAM_MS = 60.0  # a program, and so much more for each of its nodes:
COMPILE_NODE_MS = 8.0
LONG_PROGRAM_MS = 4000.0  # from here on a program is long to compile
LONG_STEP_MS = 800.0  # the same with an optimizer's update, whose lengths vary more often

# Donation: op by op no buffer is written over, and what gives buffers away is mostly a loop's body
# that will be met again.
DONATION_FACTOR = 3  # to compile such a program whole must be this many times dearer
DONATED_BYTES = 64 << 20  # and its donated buffers no larger than this
SCALAR_BYTES = 16  # a number, or a generator's state, which every draw gives away

# Loops: a program is compiled whole where it is a loop's body. A loop has a first step, the next,
# and a body in which numbers that change are inputs; more programs are batches of other lengths.
COMPILED_UPDATES = 3  # programs with one update that a loop compiles at most
RECENT_PROGRAMS = 4  # without an update: the last ones that end at one line
LOOP_RUNS = 8  # runs, maybe in a row, that no loop's body stays below
LONG_LOOP_STARTS = 2  # runs in a row after which a long program is compiled whole; 1 for others
# Between others it is once it has run op by op for this part of what that takes.
ALTERNATING_SHARE = 1.0  # episodes of other lengths seldom come again
# Compiled whole is no program that has so many nodes for each that is different, nor one of more
# ops that is no training step: to run them in pieces costs little more.
WHOLE_REPEATS = 100
WHOLE_WEIGHT = 1000

# Parts of a program.
FILLS_PER_OTHER = 8  # fills and draws beside each other op, where a program makes parameters
CALLS_PER_MODEL = 2  # calls of models and gradients, for each that is to be compiled alone
NUMPY_NODES = 8  # nodes that NumPy computes in about the time that a compiled program starts in

# NumPy: an op is compiled after so many runs, or once its largest values had so many elements
# together, which is about as long as compiling it takes.
NUMPY_RUNS, NUMPY_ELEMENTS = 1000, 1 << 22
NUMPY_DRAWS = 250  # runs of random ops, for which NumPy takes ten times as long
NUMPY_LOOP_STEPS = 300  # steps of a loop that count as a further run each time
NUMPY_FAST_ELEMENTS = 4096  # elements that NumPy computes no slower than a program starts
NUMPY_FAST_STEPS = 16  # NumPy's functions, for so few elements, that take no longer than that

# Pieces: a sequence of ops is compiled once it has run op by op for as long as that takes.
PIECE_MS, PIECE_WEIGHT_MS = 30.0, 2.0  # to compile one, and more for each op in it
OP_BY_OP_MS = 0.02  # to run one op
PIECE_WINDOW, PIECE_ROW = 16, 4  # ops around, and in a row, that say where a piece begins
PIECE_WEIGHT = 64  # ops in the turns of a loop that are one piece
