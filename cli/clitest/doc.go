// Package clitest is what every provider's tests share: the conformance suite that holds a provider to the
// contract of package cli, golden files of events, the scripted agent's surroundings, and how a test opens a session
// and has a turn.
//
// It is for tests only. It knows no dialect: a Harness brings the provider, and says by which prompts its agent is
// made to do what a case needs.
package clitest
