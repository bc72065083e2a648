// Package drivetest drives a store through its entry for tests, and knows what the store must then
// hold. It does not import the store, so that the tests of the store and those of its rooms share
// it; package storetest opens a store for the latter.
package drivetest
