"""Parts that PyTorch's names are made of where leafax has nothing behind them."""
