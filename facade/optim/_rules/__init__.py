"""Update rules, one optimizer a file."""
