package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ductor/bot"
	"ductor/cli"
	"ductor/docker"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/proctree"
	"ductor/internal/store"
	"ductor/internal/store/sqlite"
)

func doctorCommand(env config.Environment) *cobra.Command {
	var from *source
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is missing, one line a check, with the fix",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write := findings.writeText
			if asJSON {
				write = findings.writeJSON
			}
			return examine(cmd.Context(), from, cmd.OutOrStdout(), write)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write an array of objects with name, state, text and fix, for programs")
	from = sourceOf(cmd, env)
	return cmd
}

const doctorPatience = 30 * time.Second

// examine writes what the checks find and fails if anything would keep ductor from working.
func examine(ctx context.Context, from *source, out io.Writer, write func(findings, io.Writer) error) error {
	d := &doctor{}
	verdict := d.examine(ctx, from)
	return errors.Join(verdict, write(d.found, out))
}

func (d *doctor) examine(ctx context.Context, from *source) error {
	patient := ctx
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	cfg, err := from.load()
	if err != nil {
		d.fail("configuration", from.path+": "+err.Error(), "correct that file, or run: ductor setup")
		return app.OfKind(app.ErrConfig, errors.New("the configuration cannot be used"))
	}
	d.ok("configuration", from.path)
	for _, w := range cfg.Warnings {
		d.warn("configuration", w, "change that in "+from.path+"; docs/configuration.md explains it")
	}
	d.keys(cfg)
	d.telegram(ctx, cfg)
	d.groups(cfg)
	d.storage(ctx, cfg)
	d.jobs(ctx, cfg)
	d.agents(ctx, cfg)
	d.sandboxes(patient, cfg)
	if n := d.found.failed(); n > 0 {
		return fmt.Errorf("%d checks failed", n)
	}
	return nil
}

// doctor runs the checks and keeps what they find.
type doctor struct{ found findings }

func (d *doctor) ok(name, text string) {
	d.found.add(finding{Name: name, State: findingOK, Text: text})
}

func (d *doctor) warn(name, text, fix string) {
	d.found.add(finding{Name: name, State: findingWarning, Text: text, Fix: fix})
}

func (d *doctor) fail(name, text, fix string) {
	d.found.add(finding{Name: name, State: findingFailed, Text: text, Fix: fix})
}

func (d *doctor) telegram(ctx context.Context, cfg config.Config) {
	scrub := app.NewScrubber(cfg)
	transport, err := app.Transport(cfg)
	if err != nil {
		d.fail("telegram.proxy", scrub.String(err.Error()), "correct telegram.proxy")
		return
	}
	d.ok("telegram.proxy", "")
	name, err := bot.Probe(ctx, bot.Options{
		Token: cfg.Telegram.Token.Reveal(), APIBase: cfg.Telegram.APIBase, Scrub: scrub, Transport: transport,
	})
	if err != nil {
		d.fail("Telegram", scrub.String(err.Error()), "check telegram.token, telegram.proxy and the network of this machine")
	} else {
		d.ok("Telegram", "serves @"+name)
	}
	// The configuration warns of an empty allowlist.
	if users, groups := len(cfg.Telegram.AllowedUsers), len(cfg.Telegram.AllowedGroups); users+groups > 0 {
		d.ok("allowlist", fmt.Sprintf("%d users, %d groups", users, groups))
	}
}

// keys names the keys of agents, without their values, and warns of those that no agent gets.
func (d *doctor) keys(cfg config.Config) {
	for _, k := range cfg.Keys {
		what := "key " + k.Agent + "." + k.Name
		if !cfg.Agents.Enabled(k.Agent) {
			d.warn(what, fmt.Sprintf("no agent %s is enabled, so none gets it", k.Agent),
				fmt.Sprintf("run: ductor secret rm %s.%s", k.Agent, k.Name))
			continue
		}
		d.ok(what, "from "+string(k.From))
	}
}

func (d *doctor) storage(ctx context.Context, cfg config.Config) {
	d.database(ctx, filepath.Join(cfg.Storage.Dir, app.DatabaseFile))
	if err := sqlite.DiskTrouble(cfg.Storage.Dir); err != nil {
		d.fail("disk", "under "+cfg.Storage.Dir+": "+err.Error(), "free space there or replace the disk, or set storage.dir to another")
	} else {
		d.ok("disk", "under "+cfg.Storage.Dir)
	}
	switch info, err := os.Stat(cfg.Projects.DefaultDir); {
	case errors.Is(err, fs.ErrNotExist) && app.IsDefaultRoot(cfg):
		d.ok("projects.default_dir", cfg.Projects.DefaultDir+": made at the first start")
	case err != nil || !info.IsDir():
		d.fail("projects.default_dir", cfg.Projects.DefaultDir+": it is no directory", "make it or name another")
	default:
		d.ok("projects.default_dir", cfg.Projects.DefaultDir)
	}
}

// groups says whether the running ductor can end a process that cut its ties to its agent. It asks that process, since
// the shell of doctor may have rights that a service does not have.
func (d *doctor) groups(cfg config.Config) {
	const what = "control groups"
	pid, runs := app.Serving(cfg.Storage.Dir)
	if !runs {
		d.ok(what, "known once ductor runs")
		return
	}
	if _, err := proctree.GroupParent(strconv.Itoa(pid)); err != nil {
		d.warn(what, fmt.Sprintf("the running ductor has none (%v), so a process that an agent started and that cut every tie to it outlives an abort", err),
			"run ductor as a service with Delegate=yes, as in docs/install.md")
		return
	}
	d.ok(what, "each agent has one, and what it starts ends with it")
}

// database looks into the database, which a daemon may be using, and changes nothing.
func (d *doctor) database(ctx context.Context, path string) {
	db, err := store.OpenReadOnly(ctx, path, store.Options{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.mayMake(path)
	case errors.Is(err, sqlite.ErrOlder):
		d.ok("storage", path+": of an earlier version; the next start brings it up to date")
	case err != nil:
		d.fail("storage", path+": "+err.Error(), "restore a backup with ductor restore, or set storage.dir to another")
	default:
		err := errors.Join(db.Close(), unix.Access(path, unix.W_OK), unix.Access(filepath.Dir(path), unix.W_OK))
		if err != nil {
			d.fail("storage", path+": "+err.Error(), "let the user of ductor write that file and its directory")
			return
		}
		d.ok("storage", path)
	}
}

// mayMake says whether the first start can make a file.
func (d *doctor) mayMake(path string) {
	dir := filepath.Dir(path)
	for dir != filepath.Dir(dir) && errors.Is(unix.Access(dir, unix.F_OK), fs.ErrNotExist) {
		dir = filepath.Dir(dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		d.fail("storage", fmt.Sprintf("%s: it cannot be made: %s: %v", path, dir, err), "let the user of ductor write "+dir+", or set storage.dir to another")
		return
	}
	d.ok("storage", path+": the first start makes it")
}

func (d *doctor) agents(ctx context.Context, cfg config.Config) {
	if !environment.NewPolicy(cfg).OnHost() {
		d.ok("agents", "all run in sandboxes; those of this machine are not looked at")
		return
	}
	usable := 0
	err := app.WithProbes(cfg, func(providers []cli.Provider) {
		usable = d.judge(ctx, cfg, providers, "")
		if usable > 0 && len(cfg.ModelNames) > 0 {
			d.models(ctx, cfg, providers)
		}
	})
	if err != nil {
		d.fail("agents", err.Error(), "correct what it names in [agents]")
		return
	}
	if usable == 0 {
		d.fail("agents", "none can be used", "install one of them and log in to it")
	}
}

// models compares the models that the configuration names with those that the agents list.
func (d *doctor) models(ctx context.Context, cfg config.Config, providers []cli.Provider) {
	entries := make([]cli.MenuEntry, len(providers))
	var looks sync.WaitGroup
	for i, p := range providers {
		looks.Go(func() {
			entries[i] = cli.MenuEntry{Agent: p.Agent(), Auth: p.Auth(ctx)}
			if entries[i].Auth.State == cli.Authenticated {
				entries[i].Models, entries[i].Err = p.Models(ctx)
			}
		})
	}
	looks.Wait()
	doubts := app.DoubtsOfModels(cfg, entries)
	for _, doubt := range doubts {
		d.warn("models", doubt, "name a model that /model lists")
	}
	if len(doubts) == 0 {
		d.ok("models", fmt.Sprintf("%d names of the configuration", len(cfg.ModelNames)))
	}
}

// judge checks each agent of an environment and counts those that can be used.
func (d *doctor) judge(ctx context.Context, cfg config.Config, providers []cli.Provider, where string) (usable int) {
	states := make([]cli.AgentState, len(providers))
	var looks sync.WaitGroup
	for i, p := range providers { // each starts a program, which takes its time
		looks.Go(func() { states[i] = app.Look(ctx, cfg, p) })
	}
	looks.Wait()
	for _, problem := range app.ProblemsOfTools(cfg, providers) {
		d.fail(where+"tools", problem, "correct the [tools] of the configuration")
	}
	for i, p := range providers {
		state, what := states[i], where+"agent "+string(p.Agent())
		if !state.Usable() {
			d.warn(what, state.String(), "install it and log in to it, or disable it; docs/agents.md says how")
			continue
		}
		usable++
		d.ok(what, state.String())
		if limited, ok := p.(cli.Limited); ok {
			if why := limited.Cannot(state.Mode, cli.PermissionMode(cfg.Permissions.Mode)); why != "" {
				d.warn(what, fmt.Sprintf("with permissions.mode %q: %s", cfg.Permissions.Mode, why),
					"choose another permissions.mode; docs/permissions.md lists what each agent can do")
			}
		}
	}
	return usable
}

// jobs checks the schedules, and says what the next round of retention would delete.
func (d *doctor) jobs(ctx context.Context, cfg config.Config) {
	if _, err := app.Hooks(cfg); err != nil {
		d.fail("webhooks", err.Error(), "correct it in [webhooks]")
	}
	if jobs, err := app.Jobs(cfg); err != nil {
		d.fail("jobs", err.Error(), "correct that job in the configuration; docs/schedules.md explains it")
	} else if len(jobs)+len(cfg.Webhooks.Hooks) > 0 {
		d.ok("jobs", fmt.Sprintf("%d by schedule, %d by webhook", len(jobs), len(cfg.Webhooks.Hooks)))
	}
	plan, err := app.PlanRetention(ctx, cfg)
	if err != nil {
		d.fail("forgetting", err.Error(), "let the user of ductor read storage.dir, and check [retention]")
	}
	for _, f := range plan {
		if f.Err != nil {
			d.fail("forgetting", f.Err.Error(), "let the user of ductor read what it names, and check [retention]")
			continue
		}
		d.ok("forgetting "+f.Name, fmt.Sprintf("%d of %d would go (%d KB)", f.Items, f.Items+f.LeftItems, f.Bytes>>10))
	}
}

// sandboxPatience is how long a doctor waits for one sandbox.
const sandboxPatience = time.Minute

// sandboxes checks each sandbox that is in use and its agents.
func (d *doctor) sandboxes(ctx context.Context, cfg config.Config) {
	all, err := environment.OpenSandboxes(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		d.fail("sandboxes", err.Error(), "correct it in [sandbox]; docs/sandbox.md explains it")
		return
	}
	for _, b := range all.Configured() {
		if b.Setting.Mode != config.SandboxDocker {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, sandboxPatience)
		d.sandbox(ctx, cfg, b)
		cancel()
	}
	if err := all.Close(); err != nil {
		d.warn("sandboxes", err.Error(), "check the engine of sandbox.host")
	}
}

func (d *doctor) sandbox(ctx context.Context, cfg config.Config, b *environment.Sandbox) {
	what := "sandbox " + b.Name
	if b.Err != nil {
		d.fail(what, b.Err.Error(), "correct it in [sandbox]; docs/sandbox.md explains it")
		return
	}
	d.seeds(what, b)
	if p, ok := cfg.Sandbox.Projects[b.Name]; ok {
		if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
			d.fail(what, p.Dir+" is no directory", "make it or name another")
		}
	}
	status, err := b.Launcher.Status(ctx)
	if err != nil {
		d.fail(what, err.Error(), "start the engine and let the user of ductor use it, or set sandbox.host to another")
		return
	}
	detail := fmt.Sprintf("Docker %s (%s/%s) at %s, image %s %s, container %s", status.Version, status.OS, status.Arch, status.Host,
		status.Image, status.ImageIs, status.Is)
	if status.ImageIs != docker.StateThere {
		d.ok(what, detail+"; its agents are looked at when ductor runs")
		return
	}
	if err := b.Launcher.Prepare(ctx); err != nil {
		d.fail(what, err.Error(), "start the engine and let the user of ductor use it, or set sandbox.host to another")
		return
	}
	d.ok(what, detail)
	if d.judge(ctx, cfg, app.SandboxAgents(cfg, b), "sandbox "+b.Name+", ") == 0 {
		d.fail(what, "no agent can be used in it", "put them into its image, and see sandbox.logins and sandbox.seeds")
	}
}

// seeds warns of files that are to be copied and are not there.
func (d *doctor) seeds(what string, b *environment.Sandbox) {
	for _, s := range b.Seeds {
		if _, err := os.Stat(s.From); errors.Is(err, os.ErrNotExist) && !s.Optional {
			d.fail(what, fmt.Sprintf("sandbox.seeds: %s is not there", s.From), "make it or leave it out")
		}
	}
}

var _ cli.Preparer = (*docker.Launcher)(nil)
