"""Verifiers say what is right: pure Python, no torch, one package a task, and a pool of killable workers."""
