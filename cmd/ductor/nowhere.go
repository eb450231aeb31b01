package main

import (
	"context"
	"time"

	"ductor/cli"
)

// nowhere is the launcher of a sandbox that cannot be: it refuses everything with the reason.
type nowhere struct{ why error }

var _ cli.Launcher = nowhere{}

func (n nowhere) Prepare(context.Context) error                           { return n.why }
func (n nowhere) Doing() string                                           { return "" }
func (n nowhere) Errand(context.Context, []string, ...string) error       { return n.why }
func (n nowhere) Start(context.Context, cli.Command) (cli.Process, error) { return nil, n.why }
func (n nowhere) LookPath(string) (string, error)                         { return "", n.why }
func (n nowhere) Left(context.Context) ([]cli.LeftRun, error)             { return nil, n.why }
func (n nowhere) Discard(context.Context, cli.RunID) error                { return n.why }
func (n nowhere) Settled(cli.TurnID)                                      {}
func (n nowhere) Knows(time.Time) bool                                    { return false }
func (n nowhere) Attach(context.Context, cli.RunID, int64) (cli.Process, error) {
	return nil, n.why
}
