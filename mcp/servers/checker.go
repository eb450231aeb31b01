// Package servers checks the MCP servers that the user configured for all agents. It checks each server before the
// first turn that would use the server. So turns do not wait for servers that do not work.
package servers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// How long the result of a check is valid, for a working and for a broken server. If a turn finds an expired result, it
// uses the result, and starts another check.
const (
	usableFor = 15 * time.Minute
	absentFor = time.Minute
)

// Options configures a Checker. All fields are required.
type Options struct {
	Servers map[string]Settings
	Lookup  Lookup
	// Place returns where and how servers run in an environment.
	Place  func(in cli.Sandbox) (Place, error)
	Now    func() time.Time
	Logger *slog.Logger
}

// Place describes how servers run in an environment.
type Place struct {
	Launcher cli.Launcher
	Program  []string // command line prefix that starts a server; see relay.StartServer
	Dir      string   // an existing directory in the environment
	Env      func(extra map[string]string) []string
	Offline  bool // servers have no network access
}

// Checker checks servers and stores the results in memory. Safe for concurrent use.
type Checker struct {
	opts Options
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	known map[place]*state
}

// place is a server in an environment.
type place struct {
	sandbox cli.Sandbox
	server  string
}

// state is the last result of checking a server in an environment.
type state struct {
	checked chan struct{} // closed after the first check
	running bool
	problem Problem
	at      time.Time
}

// Problem returns a text that explains why a server cannot be used. A nil Problem means that the server works.
type Problem func(in lang.Printer) string

// New returns a Checker. It checks nothing yet.
func New(o Options) *Checker {
	c := &Checker{opts: o, known: map[place]*state{}}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends running checks and waits for them.
func (c *Checker) Close() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.wg.Wait()
}

// Check starts the first check of all servers in an environment. It does not wait.
func (c *Checker) Check(in cli.Sandbox) {
	for name := range c.opts.Servers {
		c.state(place{in, name})
	}
}

// For returns the servers that the agent of a request gets. All other configured servers are in absent: those for which
// wanted returns false, and those with a problem, together with the reason. If a server was never checked, the method
// For waits for its first check. It does not wait for later checks.
func (c *Checker) For(ctx context.Context, req cli.Request, wanted func(name string) bool) (given []cli.ToolServer,
	absent []cli.AbsentServer) {
	states := map[string]*state{}
	for name := range c.opts.Servers {
		if wanted(name) {
			states[name] = c.state(place{req.Sandbox, name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.opts.Servers)) {
		s, ok := states[name]
		if !ok {
			absent = append(absent, cli.AbsentServer{Name: name})
			continue
		}
		var problem Problem = func(in lang.Printer) string { return in.Text("servers.unknown") }
		select {
		case <-s.checked:
			c.mu.Lock()
			problem = s.problem
			c.mu.Unlock()
		case <-ctx.Done():
		}
		if problem == nil {
			var server cli.ToolServer
			if server, problem = c.server(place{req.Sandbox, name}); problem == nil {
				given = append(given, server)
				continue
			}
		}
		absent = append(absent, cli.AbsentServer{Name: name, Why: problem(req.Lang.Printer())})
	}
	return given, absent
}

// state returns the state of a server. It starts a check unless the last result is still valid.
func (c *Checker) state(p place) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.known[p]
	if s == nil {
		s = &state{checked: make(chan struct{})}
		c.known[p] = s
	}
	counts := usableFor
	if s.problem != nil {
		counts = absentFor
	}
	if !s.running && c.life.Err() == nil && (s.at.IsZero() || c.opts.Now().Sub(s.at) >= counts) {
		s.running = true
		c.wg.Go(func() { c.check(p, s) })
	}
	return s
}

func (c *Checker) check(p place, s *state) {
	problem, release := c.Probe(c.life, p.sandbox, p.server)
	defer release()
	c.mu.Lock()
	defer c.mu.Unlock()
	first := s.at.IsZero()
	s.running, s.problem, s.at = false, problem, c.opts.Now()
	if first {
		close(s.checked)
	}
}

// server returns the configuration of a server for agents in an environment. If they cannot use the server, it returns
// the problem.
func (c *Checker) server(p place) (cli.ToolServer, Problem) {
	settings := c.opts.Servers[p.server]
	server, missing := settings.server(p.server, c.opts.Lookup)
	if missing != "" {
		return server, func(in lang.Printer) string { return in.Text("servers.variable", missing) }
	}
	at, err := c.opts.Place(p.sandbox)
	switch {
	case err != nil:
		c.opts.Logger.Warn("find the place of an MCP server", "server", p.server, "sandbox", p.sandbox, "err", err)
		return server, func(in lang.Printer) string { return in.Text("servers.no-place") }
	case settings.URL != "" && at.Offline:
		return server, func(in lang.Printer) string { return in.Text("servers.offline") }
	case settings.Loopback() && p.sandbox != "": // in a sandbox, a loopback address means the sandbox itself
		return server, func(in lang.Printer) string { return in.Text("servers.loopback") }
	case settings.URL == "":
		server.Path = at.Program[0]
		server.Args = slices.Concat(at.Program[1:], []string{p.server, settings.Command}, settings.Args)
	}
	return server, nil
}
