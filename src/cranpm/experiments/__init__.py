"""The paper's claims, tested where the truth is known: experiments are data, run by one command."""
