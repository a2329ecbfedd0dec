"""Core: conversion of raw rows into packets."""
