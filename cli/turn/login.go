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

// Patterns in the output of a log-in from another device.
var (
	loginURL  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https?://[^\s"'<>]+`) })
	loginCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z0-9]{4,5}-[A-Z0-9]{4,5}\b`) })
)

// DeviceLogin runs the agent's log-in program. When the program has printed the page and the code, it passes both to
// show. It returns when the program has ended; the error contains the last words of the program. If ctx ends,
// DeviceLogin kills the program.
func DeviceLogin(ctx context.Context, agent cli.Agent, l cli.Launcher, cmd cli.Command,
	show func(cli.DeviceCode)) error {
	p, err := l.Start(ctx, cmd)
	if err != nil {
		return cli.StartFailure(agent, err)
	}
	var last string
	var shown bool
	stopErr := played(ctx, p, func(r io.Reader) { last, shown = readCode(r, cli.DeviceCode{Agent: agent}, show) })
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

// readCode reads a program's output to its end, and passes the page and the code in it to show. last is the last line
// of the output.
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

// Account is a dialect's way to check whether its agent can be used.
type Account struct {
	Agent        cli.Agent
	Env          []string // of the agent's processes
	Install, Fix string   // how to fix a missing agent, and a missing log-in
	Keys         []string // variables of Env that count as a log-in; one is enough
	// Else returns the method of the log-in if none of Keys is set. It returns "" if the agent is not logged in.
	Else func(ctx context.Context) string
}

// Auth checks whether an agent can be used.
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
		if ctx.Err() != nil { // the check was not finished
			auth.Fix, auth.Problem = "", cli.Failf(cli.TimedOut, a.Agent, "it did not answer in time")
		}
	}
	return auth
}

// versionWait limits the time for asking an agent's version. The agent needs time because nothing of it is loaded yet.
const versionWait = 15 * time.Second

var versionText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+\.\d+\.\d+(?:[-+]\S*\w)?`) })

// Version returns the version of an agent's program. It returns "" if the program prints no version, and an error if
// the program does not run.
func Version(ctx context.Context, o cli.ProviderOptions, agent cli.Agent, env []string) (string, error) {
	out, err := Output(ctx, o.Launcher, cli.Command{Path: o.Path, Args: []string{"--version"}, Env: env,
		For: cli.Purpose{Agent: agent}}, versionWait)
	if err != nil {
		o.Logger.Warn("an agent does not report its version", "agent", string(agent), "err", err)
	}
	return versionText().FindString(out), err
}
