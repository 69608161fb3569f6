"""From a model and a target to a certificate: a bound that is proved, an error that is observed, a witness that refutes."""
