// Package clitest is shared by the tests of all providers: the conformance suite for the contract of package cli,
// golden files of events, the environment of the scripted agent, and helpers that open sessions and run turns.
//
// It is for tests only and knows no dialect. A Harness provides the provider and the prompts that make its agent do
// each action.
package clitest
