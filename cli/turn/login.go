package turn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// Patterns for the output of a program that lets users log in from another device.
var (
	loginURL  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https?://[^\s"'<>]+`) })
	loginCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z0-9]{4,5}-[A-Z0-9]{4,5}\b`) })
)

// DeviceLogin runs the agent's log-in program. It calls show with the web page and the code that the program prints. It
// returns when the program has ended. If the program fails, the error contains the last line of its output. When ctx
// ends, DeviceLogin kills the program.
func DeviceLogin(ctx context.Context, agent cli.Agent, l cli.Launcher, cmd cli.Command,
	show func(cli.DeviceCode)) error {
	p, err := l.Start(ctx, cmd)
	if err != nil {
		return cli.StartFailure(agent, err)
	}
	var last string
	var shown bool
	stopErr := runToEnd(ctx, p, func(r io.Reader) { last, shown = readCode(r, cli.DeviceCode{Agent: agent}, show) })
	switch code := p.Exit().Code; {
	case ctx.Err() != nil:
		return fmt.Errorf("log in: %w", context.Cause(ctx))
	case code != 0:
		if words := strings.TrimSpace(cli.WithoutCodes(p.StderrTail())); words != "" {
			last = lastLine(words)
		}
		return fmt.Errorf("log in: %s: %s", cli.ExitText(lang.Printer{}, code), last)
	case !shown:
		return errors.New("log in: the program names no code")
	}
	return stopErr
}

// readCode reads a program's output to its end. When the program has printed a web page and a code, readCode calls show
// with them, but only once. readCode returns the last line of the output, and whether it called show.
func readCode(r io.Reader, d cli.DeviceCode, show func(cli.DeviceCode)) (last string, shown bool) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(cli.WithoutCodes(lines.Text()))
		if line == "" {
			continue
		}
		last = cli.ShortLine(line)
		if d.URL == "" {
			d.URL = loginURL().FindString(line)
		}
		if d.Code == "" {
			d.Code = loginCode().FindString(loginURL().ReplaceAllString(line, ""))
		}
		if d.URL != "" && d.Code != "" && !shown {
			shown = true
			show(d)
		}
	}
	return last, shown
}

// Account describes how to check whether an agent is installed and logged in.
type Account struct {
	Agent        cli.Agent
	Env          []string // environment of the agent's processes
	Install, Fix string   // advice on how to install the agent, and on how to log it in
	Keys         []string // the agent counts as logged in if one of these variables is set in Env
	// Else checks for other kinds of log-in if none of Keys is set. It returns how the agent is logged in, or "" if it
	// is not.
	Else func(ctx context.Context) string
}

// Auth checks whether the agent is installed and logged in.
func (a Account) Auth(ctx context.Context, o cli.ProviderOptions) cli.Auth {
	path, err := o.Launcher.LookPath(o.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Path: o.Path, Fix: Missing(o, a.Agent, a.Install)}
	}
	auth := cli.Auth{State: cli.Authenticated, Path: path}
	if auth.Version, err = Version(ctx, o, a.Agent, a.Env); err != nil {
		auth.Problem = &cli.Failure{Kind: cli.Crashed, Agent: a.Agent, Code: cli.CodeUnknown,
			Reason: cli.ShortLine(err.Error())}
	}
	if i := slices.IndexFunc(a.Keys, func(name string) bool { return cli.Variable(a.Env, name) != "" }); i >= 0 {
		auth.Method = a.Keys[i]
	} else if auth.Method = a.Else(ctx); auth.Method == "" {
		auth.State, auth.Fix = cli.Installed, a.Fix
		if ctx.Err() != nil { // the check did not finish
			auth.Fix, auth.Problem = "", cli.Failf(cli.TimedOut, a.Agent, "failure.no-answer")
		}
	}
	return auth
}

// versionWait limits how long an agent may take to print its version. Most of this time, the agent loads its code.
const versionWait = 15 * time.Second

var versionText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+\.\d+\.\d+(?:[-+]\S*\w)?`) })

// Version runs an agent's program to get its version. It returns "" if the program prints none, and an error if the
// program does not run.
func Version(ctx context.Context, o cli.ProviderOptions, agent cli.Agent, env []string) (string, error) {
	out, err := Output(ctx, o.Launcher, cli.Command{Path: o.Path, Args: []string{"--version"}, Env: env,
		For: cli.Purpose{Agent: agent}}, versionWait)
	if err != nil && !cli.Interrupted(ctx, err) {
		o.Logger.Warn("an agent does not report its version", "agent", string(agent), "err", err)
	}
	return versionText().FindString(out), err
}
