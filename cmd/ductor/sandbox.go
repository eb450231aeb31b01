package main

import (
	"errors"

	"ductor/internal/config"
)

// refuseSandbox keeps agents off this machine that were asked for in a sandbox.
func refuseSandbox(cfg config.Config) error {
	asked := cfg.Sandbox.Mode == config.SandboxDocker
	for _, p := range cfg.Sandbox.Projects {
		asked = asked || p.Mode == config.SandboxDocker
	}
	if asked {
		return coded{errors.New("sandbox.mode: this ductor cannot run agents in containers"), errConfig}
	}
	return nil
}
