// Package transfer moves the logs of one tenant into and out of a store, and checks
// them: what the commands import, export, verify and executions do.
//
// A file is newline-delimited JSON, plain or gzip, one event a line:
//
//	{"executionId":"order 7","kind":"Paid","recordedAt":"2024-05-01T09:30:00Z","payload":{"total":12.30}}
//
// The payload of an event is the bytes of that JSON value as they stand in the line.
// The full format has more fields; docs/import-export.md describes both.
//
// Every function works on a tenant's view of a store and asks nothing of it but the
// methods of package spi. None needs a file beside the data to go on after a stop: an
// import is told by the store what is there already, an export by the id that it got to.
package transfer
