"""Tests of the packages run small test files in a pytest of their own."""

pytest_plugins = ["pytester"]
