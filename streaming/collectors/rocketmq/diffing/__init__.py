"""Shell: conversion of two polls of RocketMQ into events."""
