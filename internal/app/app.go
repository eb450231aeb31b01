package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/bot"
	"ductor/bot/checks"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/cli/service"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/health"
	"ductor/internal/memory"
	"ductor/internal/metrics"
	"ductor/internal/proctree"
	"ductor/internal/roles"
	"ductor/internal/runner"
	"ductor/internal/store"
	"ductor/internal/trace"
	"ductor/lang"
	"ductor/mcp"
	"ductor/orchestrator"
	"ductor/orchestrator/changes"
	"ductor/orchestrator/consult"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/projects"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/steps"
	"ductor/orchestrator/users"
	"ductor/web"
)

// The names inside the storage directory.
const (
	DatabaseFile = "ductor.db" // and files whose names begin so
	spoolDir     = "outgoing"  // files until they are sent
	runsDir      = "runner"    // what agents print, until their turns are stored
	oldRunsDir   = "runs"      // the same, of a ductor that had a supervisor for each agent
)

// How long each stage of an ordered end may take.
const (
	drainTurns   = 20 * time.Second // running turns may reach their end
	drainAgents  = 10 * time.Second // then everything that agents started is ended
	drainNotices = 10 * time.Second // messages that must arrive are sent
	drainCards   = 5 * time.Second  // cards of turns that continue show what their agents did so far
)

const (
	sweepEvery = time.Minute
	pruneEvery = 24 * time.Hour
	promptsAge = 24 * time.Hour // by then no agent is about to read one
)

// App is ductor: every package constructed and connected.
type App struct {
	Options
	inUse
	db           *store.DB
	host         Launcher
	envs         environment.Environments
	service      *service.Service
	orchestrator *conversation.Engine
	consults     *consult.Engine
	bot          *bot.Bot
	timers       *timers
	beside
	ticks ticks
}

// beside are parts beside the path of a message. A configuration can do without those that may be nil.
type beside struct {
	lang    *lang.Choices // the languages of chats
	users   *users.Directory
	roles   *roles.Set
	tools   *mcp.Server   // nil: agents get none
	tracer  *trace.Tracer // nil: nothing is measured
	health  *health.Health
	calls   *metrics.Calls   // to Telegram
	monitor *web.Server      // answers monitors; nil: none is wanted
	changes *changes.Service // looks at files
}

// ticks are what goes on as long as the app does.
type ticks struct {
	sync.WaitGroup
	stop context.CancelFunc
}

// Options configure an App. Log and Scrub are required.
type Options struct {
	Log     *slog.Logger
	Scrub   *tgapi.Scrubber
	Version string         // for the log
	Runner  runner.Options // how the runner is started; without a command as environment.HostRunner says
	// Launcher starts the agents of this machine, and is closed with the App; nil: the one over Runner.
	Launcher Launcher
	Tracer   orchestrator.Tracer // of turns; nil: the one that the configuration wants
	Network  Network             // a nil field follows the configuration
	// Examine checks the configuration that runs, with its agents on this machine, for /doctor; nil: there is no such command.
	Examine func(ctx context.Context, running config.Config, agents []cli.Provider) checks.Report
	// Load reads the configuration again; nil: it stays as it is.
	Load  func() (config.Config, error)
	Level *slog.LevelVar // of the log; nil: it stays as it is
	// Damaged is why an App of this process ended, if that was because of a damaged database.
	Damaged error
	// Store tunes the database.
	Store store.Options
	// Started is called when the work of the start is over; nil: it gives memory back that only the start used.
	Started func() error
}

// Network contains the connections of an App. Agents have their own.
type Network struct {
	Telegram http.RoundTripper // makes the calls to Telegram
	Webhooks net.Listener      // accepts the calls of webhooks
}

// Launcher is a launcher that an App closes.
type Launcher interface {
	cli.Launcher
	Close() error
}

// Build constructs what ductor consists of, from the store up. Until Run, only the sender of cards runs.
func Build(ctx context.Context, cfg config.Config, opts Options) (_ *App, err error) {
	a := &App{Options: opts}
	if a.Started == nil {
		a.Started = memory.Start()
	}
	a.begin(cfg)
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if err = a.openHostAndDatabase(ctx); err != nil {
		return nil, err
	}
	if a.envs, err = environment.Open(cfg, a.Log); err != nil {
		return nil, err
	}
	if err = a.openStore(ctx); err != nil {
		return nil, err
	}
	a.timers = newTimers(a)
	served, err := a.serving(ctx)
	if err != nil {
		return nil, err
	}
	served.Jobs, served.Files, served.Changes = a.timers.scheduler, a.files(), a.newChanges()
	repos := projects.New(projects.Options{Named: func() map[string]string { return a.now().projects }, Roots: cfg.Projects.Roots, Sandboxes: a.envs.Sandboxes.Policy()})
	book := sessions.New(sessions.Options{Store: a.db, Now: time.Now, NewID: newID, Seen: a.seenIn})
	served.SetAway, served.Checks = a.setAway, a.examiner()
	served.Projects, served.Steps, served.Sessions, served.Usage = repos, steps.Reader{Store: a.db}, book, a.db
	if served.Polled, err = a.openHealth(); err != nil {
		return nil, err
	}
	if a.bot, err = bot.New(ctx, served); err != nil {
		return nil, err
	}
	agents := serviceOptions(cfg, a)
	if problems := ProblemsOfTools(cfg, a.providers); len(problems) > 0 {
		return nil, OfKind(ErrConfig, errors.New(strings.Join(problems, "\n")))
	}
	if a.service, err = service.New(agents); err != nil {
		return nil, err
	}
	a.openTracer()
	a.orchestrator = conversation.New(conversationOptions(cfg, a))
	a.consults = consult.New(consultOptions(cfg, a))
	a.bot.Attach(a.consults)
	book.Attach(a.orchestrator, a.service)
	a.attachRepositories(repos)
	if err = a.openTools(book); err != nil {
		return nil, err
	}
	if err = buildTimers(ctx, a); err != nil {
		return nil, err
	}
	return a, nil
}

// openHost opens the launcher of this machine, unless the options have one.
func (a *App) openHost(ctx context.Context) (err error) {
	if a.host = a.Launcher; a.host != nil {
		return nil
	}
	if len(a.Runner.Command) == 0 {
		a.Runner = environment.HostRunner(ctx, a.cfg, a.Log)
	}
	if err = endSupervised(ctx, a.cfg, a.Runner); err != nil {
		return err
	}
	launcher, err := openHost(a.cfg, a.Runner, a.Log)
	if err == nil { // a nil one in an interface is not nil
		a.host = launcher
	}
	return err
}

// openStore opens the folder of roles, and reads users and the languages of chats.
func (a *App) openStore(ctx context.Context) (err error) {
	if err = a.tryDisk(ctx); err != nil {
		return err
	}
	if a.users, err = users.Open(ctx, users.Options{Store: a.db, Configured: func() orchestrator.Roster { return a.now().roster }, Now: time.Now, Random: rand.Reader, Log: a.Log}); err != nil {
		return err
	}
	a.roles = roles.Open(a.cfg.RolesDir(), a.cfg.Roles, time.Now, a.Log)
	a.lang, err = lang.OpenChoices(ctx, a.db, int64(ownerOf(a.cfg)))
	return err
}

// tryDisk refuses to start on a disk that reports errors: a restart every few seconds would repeat the same message
// and repair nothing. A full disk is only logged, since files may be deleted at any moment.
func (a *App) tryDisk(ctx context.Context) error {
	err := a.db.RetryDisk(ctx)
	if state, _ := a.db.Disk(); state == orchestrator.DiskFailed {
		return fmt.Errorf("%w; look after it, and start ductor again", err)
	}
	if err != nil {
		a.Log.Warn("the disk may be full", "err", err)
	}
	return nil
}

// Run serves until ctx ends, and then stops the jobs.
func (a *App) Run(ctx context.Context) error {
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.ticks.stop = stop
	a.ticks.Go(func() { a.timers.sweep.Run(ticking) })
	a.ticks.Go(func() { a.timers.retention.Run(ticking) })
	a.ticks.Go(func() { a.prune(ticking) })
	a.ticks.Go(func() { a.keepDatabase(ticking) })
	a.ticks.Go(func() { a.envs.Sandboxes.Run(ticking) })
	a.ticks.Go(func() { a.forgetCrashes(ticking) })
	if a.cfg.Tracing.URL != "" {
		a.ticks.Go(func() { a.tracer.Run(ticking) })
	}
	if a.tools != nil {
		a.ticks.Go(func() { a.serveTools(ticking) })
	}
	defer a.watchHealth(ticking)()
	a.service.Refresh()
	a.ticks.Go(func() {
		a.logAgents(ticking)
		a.checkModels(ticking)
		if err := a.Started(); err != nil {
			a.Log.Info("memory of the start is kept", "err", err)
		}
	})
	if err := a.orchestrator.Recover(ctx); err != nil {
		return err
	}
	// Jobs end before Close or Leave, so that none asks for a turn of an orchestrator that is closed.
	defer a.timers.start(ctx, a)()
	defer a.hearTerminals(ctx)()
	if _, err := proctree.GroupParent("self"); err != nil {
		a.Log.Info("agents get no control groups of their own; with Delegate=yes in ductor's unit they do", "why", err)
	}
	a.Log.Info("ductor runs", "version", a.Version, "storage", a.cfg.Storage.Dir)
	err := a.bot.Run(ctx, a.orchestrator)
	if errors.Is(err, updates.ErrToken) {
		return OfKind(ErrToken, fmt.Errorf("Telegram refuses the bot token; get the right one from @BotFather and set telegram.token"))
	}
	return err
}

// Close ends what was built, the last first: it takes no new turns, waits for running ones, ends agents with all they
// started, sends what must arrive, and closes the database. An app that was built in part can be closed.
func (a *App) Close() {
	if a.consults != nil {
		a.stage(drainAgents, "questions to models", a.consults.Close)
	}
	if a.orchestrator != nil {
		a.stage(drainTurns, "turns", func(ctx context.Context) error { a.orchestrator.Close(ctx); return nil })
	}
	if a.changes != nil {
		a.stage(drainAgents, "snapshots", a.changes.Close)
	}
	if a.service != nil {
		a.stage(drainAgents, "agents", a.service.Close)
	}
	a.closeRest()
}

// Leave is Close for a daemon that will start again: agents continue under their runner, and the next process
// resumes their turns.
func (a *App) Leave() {
	a.stage(drainAgents, "questions to models", a.consults.Close)
	a.stage(drainCards, "turns", func(ctx context.Context) error { a.orchestrator.Detach(ctx); return nil })
	a.stage(drainAgents, "snapshots", a.changes.Close)
	a.stage(drainAgents, "agents", a.service.Detach)
	a.closeRest()
}

func (a *App) closeRest() {
	if a.bot != nil {
		a.stage(drainNotices, "messages", a.bot.Close)
	}
	if a.ticks.stop != nil {
		a.ticks.stop()
	}
	a.ticks.Wait()
	if a.timers != nil {
		a.timers.close()
	}
	if a.monitor != nil {
		_ = a.monitor.Close() // closed already, if it was served
	}
	if a.db != nil {
		a.stage(drainNotices, "database", func(context.Context) error { return a.db.Close() })
	}
	a.stage(drainAgents, "environments", func(context.Context) error { return a.envs.Close() })
	if a.host != nil {
		a.stage(drainAgents, "runs", func(context.Context) error { return a.host.Close() })
	}
}

// stage runs one step of the shutdown with a limit of time.
func (a *App) stage(limit time.Duration, what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := f(ctx); err != nil {
		a.Log.Warn("shutdown", "stage", what, "err", err)
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
