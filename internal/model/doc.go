// Package model checks a store against a sequential specification.
//
// [Run] lets several clients work on a few executions at random, through any stack
// and while others break things, and records each call with its answer. [History.Check]
// then asks whether there is an order in which one client at a time could have got the
// same answers (linearizability, by porcupine), execution by execution, and whether
// each page held what was live all the time and nothing that was not. The numbers in
// this package's comments are those of the invariants in docs/contract.md.
package model
