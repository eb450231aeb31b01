// Package clitest is what every provider's tests share: the conformance suite that holds a provider to the
// contract of package cli, and golden files of events.
//
// It is for tests only. It knows no dialect and starts no agent: a Harness brings the provider, and says
// by which prompts its agent is made to do what a case needs.
package clitest
