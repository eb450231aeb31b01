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
	"ductor/internal/attach"
	"ductor/internal/config"
	"ductor/internal/health"
	"ductor/internal/memory"
	"ductor/internal/proctree"
	"ductor/internal/roles"
	"ductor/internal/runner"
	"ductor/internal/store"
	"ductor/internal/trace"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/changes"
	"ductor/orchestrator/consult"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/projects"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/steps"
	"ductor/orchestrator/users"
)

// Names in the storage directory.
const (
	DatabaseFile = "ductor.db" // names of SQLite's other files begin with this name
	spoolDir     = "outgoing"  // files that ductor still has to send to chats
	runsDir      = "runner"    // runs of agents, until the outcomes of their turns are stored
	oldRunsDir   = "runs"      // where old versions stored the runs of agents; see endSupervised
)

// Time limits for the stages of a shutdown.
const (
	drainTurns   = 20 * time.Second // time limit for running turns
	drainAgents  = 10 * time.Second // time limit for ending the processes of agents
	drainNotices = 10 * time.Second // time limit for sending messages that must not be lost
	drainCards   = 5 * time.Second  // time limit for showing the latest output of turns that continue
)

const (
	sweepEvery = time.Minute
	pruneEvery = 24 * time.Hour
	promptsAge = 24 * time.Hour // age at which ductor deletes system prompts; agents read them only at their start
)

// App is a running ductor. It connects all packages.
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

	lang     *lang.Choices
	users    *users.Directory
	roles    *roles.Set
	tools    toolServers
	tracer   *trace.Tracer // nil if traces and metrics are disabled
	health   *health.Health
	monitor  monitor
	changes  *changes.Service // takes snapshots of projects' files
	attached attached

	background background
}

// background is a group of goroutines that run until the App closes.
type background struct {
	sync.WaitGroup
	stop context.CancelFunc
}

type Options struct {
	Log     *slog.Logger
	Scrub   *tgapi.Scrubber
	Version string
	// Runner determines how the runner on this machine is started. If Runner has no command, environment.HostRunner
	// chooses one.
	Runner runner.Options
	// Launcher starts agents on this machine. The App closes it. If Launcher is nil, the App creates one from Runner.
	Launcher Launcher
	// If Tracer is not nil, it replaces the tracer that the configuration selects.
	Tracer orchestrator.Tracer
	// Network contains connections that the App uses. If a field of Network is nil, the App opens that connection
	// itself.
	Network Network
	// Examine checks this machine for the command /doctor. If Examine is nil, the command does not exist.
	Examine func(context.Context, Examined) checks.Report
	// Load reads the configuration again. If it is nil, users cannot reload the configuration.
	Load  func() (config.Config, error)
	Level *slog.LevelVar // log level; a reload changes it; may be nil
	// Damaged is the error of a previous App in this process if that App ended because its database was damaged.
	// Otherwise Damaged is nil.
	Damaged error
	Store   store.Options
	// ReleaseMemory is called when the start is complete, and after each check and backup of the database. The default
	// is the function that memory.Start returns.
	ReleaseMemory func() error
}

type Network struct {
	Telegram http.RoundTripper // sends requests to Telegram
	Webhooks net.Listener      // accepts calls of webhooks
}

// Launcher is a cli.Launcher that the App can close.
type Launcher interface {
	cli.Launcher
	Close() error
}

// Build creates an App. Before Run, the App only sends and updates messages; it receives nothing.
func Build(ctx context.Context, cfg config.Config, opts Options) (_ *App, err error) {
	a := &App{Options: opts}
	a.tools.tokens = &tokens{dir: cfg.Storage.Dir, scrub: opts.Scrub}
	if a.ReleaseMemory == nil {
		a.ReleaseMemory = memory.Start()
	}
	a.setStart(cfg)
	a.attached.hub = attach.NewHub(time.Now, a.Log)
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if err = a.openHostAndDatabase(ctx); err != nil {
		return nil, err
	}
	if a.envs, err = environment.Open(cfg, a.now().policy, a.Log); err != nil {
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
	repos := projects.New(projects.Options{Named: func() map[string]string { return a.now().projects },
		Roots: cfg.Projects.Roots, Sandboxes: a.now().policy})
	book := sessions.New(sessions.Options{Store: a.db, Now: time.Now, NewID: newID, Access: a.access(), Seen: a.seenIn})
	served.SetAway, served.Checks = a.setAway, a.examiner()
	served.Projects, served.Steps, served.Sessions, served.Usage = repos, steps.Reader{Store: a.db}, book, a.db
	if served.Polled, err = a.openHealth(); err != nil {
		return nil, err
	}
	if a.bot, err = bot.New(ctx, served); err != nil {
		return nil, err
	}
	agents := serviceOptions(cfg, a)
	if problems := ProblemsOfTools(cfg, a.machine.used); len(problems) > 0 {
		return nil, WithKind(ErrConfig, errors.New(strings.Join(problems, "\n")))
	}
	logUselessTools(cfg, a.Log)
	logLinkedProjects(cfg, a.now().policy, a.Log)
	if a.service, err = service.New(agents); err != nil {
		return nil, err
	}
	a.openTracer()
	a.orchestrator = conversation.New(conversationOptions(cfg, a))
	a.consults = consult.New(consultOptions(cfg, a))
	a.bot.Attach(a.consults)
	book.Attach(a.orchestrator, a.service)
	a.attachRepositories(repos)
	if err = a.openSockets(book); err != nil {
		return nil, err
	}
	if err = buildTimers(ctx, a); err != nil {
		return nil, err
	}
	return a, nil
}

// openHost sets the launcher of this machine: the one in the options, or else a new one.
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
	if err == nil { // do not assign a nil *host.Launcher, because the interface a.host would then not be nil
		a.host = launcher
	}
	return err
}

// openStore checks the disk, and loads roles, users and the languages of chats.
func (a *App) openStore(ctx context.Context) (err error) {
	if err = a.tryDisk(ctx); err != nil {
		return err
	}
	if a.users, err = users.Open(ctx, users.Options{Store: a.db, Configured: func() orchestrator.Roster {
		return a.now().roster
	}, Now: time.Now, Random: rand.Reader, Log: a.Log}); err != nil {
		return err
	}
	a.roles = roles.Open(a.cfg.RolesDir(), a.cfg.Roles, time.Now, a.Log)
	a.lang, err = lang.OpenChoices(ctx, a.db, int64(ownerOf(a.cfg)))
	return err
}

// tryDisk checks whether the database can write to the disk. It returns an error if the disk has failed: the user must
// check the disk before ductor starts. It only logs a full disk, because ductor continues when the user has deleted
// files.
func (a *App) tryDisk(ctx context.Context) error {
	err := a.db.RetryDisk(ctx)
	if state, _ := a.db.Disk(); state == orchestrator.DiskFailed {
		return fmt.Errorf("%w; check the disk, then start ductor again", err)
	}
	if err != nil {
		a.Log.Warn("the disk may be full", "err", err)
	}
	return nil
}

// Run serves chats until ctx ends, and then stops the scheduler.
func (a *App) Run(ctx context.Context) error {
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.background.stop = stop
	a.background.Go(func() { a.timers.sweep.Run(ticking) })
	a.background.Go(func() { a.timers.retention.Run(ticking) })
	a.background.Go(func() { a.prune(ticking) })
	a.background.Go(func() { a.keepDatabase(ticking) })
	a.background.Go(func() { a.envs.Sandboxes.Run(ticking) })
	a.background.Go(func() { a.forgetCrashes(ticking) })
	a.background.Go(func() {
		a.reloading.Lock()
		defer a.reloading.Unlock()
		a.leaveAccounts()
	})
	if a.cfg.Tracing.URL != "" {
		a.background.Go(func() { a.tracer.Run(ticking) })
	}
	if a.tools.own != nil {
		a.background.Go(func() { a.serveTools(ticking) })
		defer a.tools.own.EndOutside()
	}
	defer a.watchHealth(ticking)()
	a.service.Refresh()
	if a.envs.Sandboxes.Policy().OnHost() {
		a.tools.owners.Check("")
	}
	// The checks run programs of agents. Close and Leave end these programs, and a check would report the end as a
	// failure. So cancel the checks before Run returns.
	checking, stopChecks := context.WithCancel(ticking)
	defer stopChecks()
	a.background.Go(func() {
		a.logAgents(checking)
		a.checkModels(checking)
		a.releaseMemory(ticking)
	})
	aborts, err := a.bot.StoredAborts(ctx)
	if err != nil {
		return err
	}
	if err := a.orchestrator.Recover(ctx, aborts...); err != nil {
		return err
	}
	// The scheduler must stop before Close or Leave, which close the orchestrator, so that no job submits a turn to a
	// closed orchestrator.
	defer a.timers.start(ctx, a)()
	defer a.serveTerminals(ctx)()
	defer a.attached.serve(ctx, a.Log)()
	if _, err := proctree.GroupParent("self"); err != nil {
		a.Log.Info("agents share a control group; set Delegate=yes in ductor's unit to separate them", "why", err)
	}
	a.Log.Info("ductor runs", "version", a.Version, "storage", a.cfg.Storage.Dir)
	err = a.bot.Run(ctx, a.orchestrator, aborts...)
	if errors.Is(err, updates.ErrToken) {
		return WithKind(ErrToken, fmt.Errorf("Telegram refuses the bot token; get the right one from @BotFather and "+
			"set telegram.token"))
	}
	return err
}

// Close shuts ductor down. It accepts no new turns, waits for running turns, ends agents with all their processes,
// sends messages that must not be lost, and closes the database. It also works if Build has failed halfway.
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

// Leave closes the App like Close, but agents continue under their runner. The next process of ductor resumes their
// turns.
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
	if a.background.stop != nil {
		a.background.stop()
	}
	a.background.Wait()
	a.tools.close()
	if a.timers != nil {
		a.timers.close()
	}
	if a.monitor.site != nil {
		_ = a.monitor.site.Close()
	}
	if a.db != nil {
		a.stage(drainNotices, "database", func(context.Context) error { return a.db.Close() })
	}
	a.stage(drainAgents, "environments", func(context.Context) error { return a.envs.Close() })
	if a.host != nil {
		a.stage(drainAgents, "runs", func(context.Context) error { return a.host.Close() })
	}
}

// stage runs one stage of the shutdown. It only logs an error, because the next stages must run anyway.
func (a *App) stage(limit time.Duration, name string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := f(ctx); err != nil {
		a.Log.Warn("shutdown", "stage", name, "err", err)
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
