package environment

import (
	"errors"
	"log/slog"

	"ductor/cli/host"
	"ductor/internal/config"
)

// Environments contains the sandboxes of a configuration, and the home directories of sessions on this machine.
type Environments struct {
	Sandboxes *Sandboxes
	Homes     *host.Homes // nil if all sessions use the home of the user who runs ductor
}

// Open opens the environments. It does not contact a container engine.
func Open(cfg config.Config, policy Policy, log *slog.Logger) (e Environments, err error) {
	if e.Sandboxes, err = OpenSandboxes(cfg, policy, log); err != nil {
		return Environments{}, err
	}
	if e.Homes, err = openHomes(cfg); err != nil {
		return Environments{}, errors.Join(err, e.Sandboxes.Close())
	}
	return e, nil
}

// Close closes sandboxes and homes. Agents in the sandboxes continue.
func (e Environments) Close() error {
	var errs []error
	if e.Homes != nil {
		errs = append(errs, e.Homes.Close())
	}
	if e.Sandboxes != nil {
		errs = append(errs, e.Sandboxes.Close())
	}
	return errors.Join(errs...)
}
