// Package clitest helps to test providers and launchers. It contains a conformance suite for the contracts of package
// cli, golden files of events, scripted agents, and helpers that open sessions and run turns.
//
// The package is for tests only, and knows no agent's protocol. A Harness contains the provider, and the prompts that
// make its agent do each action.
package clitest
