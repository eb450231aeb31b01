// Package doctor searches for problems that can prevent ductor from working, and names a fix for each problem. It
// changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/bot"
	"ductor/bot/checks"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/proctree"
)

// timeout limits the time of all checks together, except the checks of sandboxes. sandboxTimeout limits those.
const timeout = 30 * time.Second

// Examine checks a configuration. The findings contain no secrets from the configuration or the environment.
func Examine(ctx context.Context, cfg config.Config) Findings {
	d := &doctor{scrub: app.NewScrubber(cfg)}
	d.ok(configuration, cfg.File)
	d.examine(ctx, cfg, func(f func([]cli.Provider)) error { return app.WithProbes(cfg, f) })
	return d.found
}

// examine runs all checks of a valid configuration. withAgents provides the agents on this machine.
func (d *doctor) examine(ctx context.Context, cfg config.Config, withAgents func(func([]cli.Provider)) error) {
	unlimited := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, w := range cfg.Warnings {
		text, fix := cutFix(w, "change that in "+cfg.File+"; docs/configuration.md explains it")
		d.warn(configuration, text, fix)
	}
	d.checkKeys(cfg)
	d.checkTelegram(ctx, cfg)
	d.checkGroups(cfg)
	d.checkStorage(ctx, cfg)
	d.checkJobs(ctx, cfg)
	d.checkHostAgents(ctx, cfg, withAgents)
	for _, useless := range app.UselessTools(cfg) {
		d.warn(tools, useless.Problem, useless.Fix)
	}
	d.checkServers(ctx, cfg)
	d.checkSandboxes(unlimited, cfg)
}

// Report checks a running ductor, using the agents that this ductor runs. It also checks whether the configuration file
// could replace the configuration in use.
func Report(ctx context.Context, e app.Examined) (r checks.Report) {
	d := &doctor{scrub: app.NewScrubber(e.Running)}
	d.checkFile(e)
	d.examine(ctx, e.Running, func(f func([]cli.Provider)) error { f(e.Agents); return nil })
	r.LogIn = d.loggedOut
	for _, f := range d.found {
		p := checks.Problem{Name: f.Name, Text: f.Text, Fix: f.Fix}
		switch f.State {
		case OK:
			r.Passed++
		case Warning:
			r.Warnings = append(r.Warnings, p)
		case Failed:
			r.Failures = append(r.Failures, p)
		}
	}
	return r
}

// checkFile checks the configuration file of a running ductor, which may have changed since ductor read it.
func (d *doctor) checkFile(e app.Examined) {
	file := e.Running.File
	switch {
	case e.Mistakes != nil:
		d.failEach(e.Mistakes, "correct "+file+", then send /reload")
	case len(e.Changes) > 0:
		var keys []string
		fix := "restart ductor"
		for _, c := range e.Changes {
			keys = append(keys, c.Key)
			if c.Applies == config.AtOnce {
				fix = "send /reload"
			}
		}
		d.warn(configuration, file+" differs from the settings in use: "+strings.Join(keys, ", "), fix)
	default:
		d.ok(configuration, file)
	}
}

// Unreadable returns one finding for each mistake in a configuration that cannot be loaded.
func Unreadable(path string, err error) Findings {
	defaultFix := "correct " + path + ", or run: ductor setup"
	if errors.Is(err, fs.ErrNotExist) {
		defaultFix = "run: ductor setup"
	}
	d := &doctor{}
	d.failEach(err, defaultFix)
	return d.found
}

// failEach adds one finding for each line of an error of the configuration. If the line contains no fix, the fix
// of the finding is defaultFix.
func (d *doctor) failEach(err error, defaultFix string) {
	for mistake := range strings.Lines(err.Error()) {
		text, fix := cutFix(strings.TrimSpace(mistake), defaultFix)
		d.fail(configuration, text, fix)
	}
}

// cutFix splits a text that ends with a fix, such as "run: chmod 600 FILE", into the problem and the fix. If the text
// contains no fix, the fix is defaultFix.
func cutFix(text, defaultFix string) (what, fix string) {
	if what, command, found := strings.Cut(text, "; run: "); found {
		return what, "run: " + command
	}
	return text, defaultFix
}

type doctor struct {
	scrub     *tgapi.Scrubber
	found     Findings
	loggedOut []cli.Agent
}

func (d *doctor) ok(of check, text string) {
	d.addFinding(Finding{Name: string(of), State: OK, Text: text})
}

func (d *doctor) warn(of check, text, fix string) {
	d.addFinding(Finding{Name: string(of), State: Warning, Text: text, Fix: fix})
}

func (d *doctor) fail(of check, text, fix string) {
	d.addFinding(Finding{Name: string(of), State: Failed, Text: text, Fix: fix})
}

func (d *doctor) addFinding(f Finding) {
	f.Text, f.Fix = d.scrub.String(f.Text), d.scrub.String(f.Fix)
	d.found.appendFinding(f)
}

func (d *doctor) checkTelegram(ctx context.Context, cfg config.Config) {
	transport, err := app.Transport(cfg)
	if err != nil {
		d.fail(proxy, err.Error(), "correct telegram.proxy")
		return
	}
	through := "none, Telegram is reached directly"
	if cfg.Telegram.Proxy != "" {
		through = "as configured"
	}
	d.ok(proxy, through)
	name, err := bot.Probe(ctx, bot.Options{
		Token: cfg.Telegram.Token.Reveal(), APIBase: cfg.Telegram.APIBase, Scrub: d.scrub, Transport: transport,
	})
	if err != nil {
		fix := "check telegram.token, telegram.proxy and the network of this machine"
		if cfg.Telegram.APIBase != config.Default().Telegram.APIBase {
			fix = "check telegram.api_base, telegram.token, telegram.proxy and the network of this machine"
		}
		d.fail(telegram, err.Error(), fix)
	} else {
		d.ok(telegram, "serves @"+name)
	}
	// An empty allowlist needs no finding, because loading the configuration warns about it.
	if users, groups := len(cfg.Telegram.AllowedUsers), len(cfg.Telegram.AllowedGroups); users+groups > 0 {
		d.ok(allowlist, counted(users, "user")+", "+counted(groups, "group"))
	}
}

// counted formats a number with a noun, such as "2 users".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// checkKeys lists the stored keys of agents without their values, and warns of keys that no enabled agent needs.
func (d *doctor) checkKeys(cfg config.Config) {
	for _, k := range cfg.Keys {
		what := key.named(k.Agent + "." + k.Name)
		server, ok := cfg.MCP.Servers[k.Agent]
		if !cfg.Agents.Uses(k.Agent) && !(ok && slices.Contains(server.Env, k.Name)) {
			d.warn(what, fmt.Sprintf("no agent or MCP server %s that needs it is enabled", k.Agent),
				fmt.Sprintf("run: ductor secret rm %s.%s", k.Agent, k.Name))
			continue
		}
		d.ok(what, "from "+string(k.From))
	}
}

// checkGroups checks whether ductor can use control groups (cgroups). Without control groups, ductor cannot end a
// background process that an agent started and detached. checkGroups inspects the process of the running ductor,
// because the user's shell may have other rights.
func (d *doctor) checkGroups(cfg config.Config) {
	pid, runs := app.StorageUser(cfg.Storage.Dir)
	if !runs {
		d.ok(groups, "checked once ductor runs")
		return
	}
	if _, err := proctree.GroupParent(strconv.Itoa(pid)); err != nil {
		d.warn(groups, fmt.Sprintf("the running ductor has none (%v), so a process that detached itself from its "+
			"agent survives /abort", err),
			"run ductor as a service with Delegate=yes, as in docs/install.md")
		return
	}
	d.ok(groups, "each agent has one, so /abort stops everything that it started")
}
