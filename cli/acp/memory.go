package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// LoginMemory stores a text for a provider, so that the next process of ductor finds it.
type LoginMemory interface {
	LoadLogin() (string, error) // returns "" if none is stored
	SaveLogin(text string) error
}

// remember stores the method by which a user has logged in to the agent.
func (p *Provider) remember(method string) error {
	p.login.chosen.Store(&method)
	if p.opts.Memory == nil {
		return nil
	}
	return p.opts.Memory.SaveLogin(p.opts.fingerprint() + " " + method)
}

// remembered returns the method by which a user last logged in to the agent, or "" if none is known. If ductor was
// restarted since then, the method counts only if the agent's program and keys are still the same.
func (p *Provider) remembered() string {
	if p.login.chosen.Load() == nil && p.opts.Memory != nil {
		text, err := p.opts.Memory.LoadLogin()
		if err != nil {
			p.opts.Logger.Warn("load how a user logged in an agent", "agent", p.opts.Agent, "err", err)
			return ""
		}
		of, method, _ := strings.Cut(text, " ")
		if of != p.opts.fingerprint() {
			method = ""
		}
		p.login.chosen.CompareAndSwap(nil, &method)
	}
	if chosen := p.login.chosen.Load(); chosen != nil {
		return *chosen
	}
	return ""
}

// fingerprint returns a hash of the agent's program, its configured log-in method, and the variables in
// Options.AllowEnv with their values.
func (o *Options) fingerprint() string {
	parts := append([]string{o.Path, o.AuthMethod}, o.AllowEnv...)
	for _, entry := range o.Env() {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(o.AllowEnv, name) {
			parts = append(parts, entry)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
