"""Proofs about composed layers, lane by lane."""
