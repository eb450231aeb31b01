package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
	"ductor/web"
	"ductor/web/demo"
)

const (
	firstPage = "/"
	tourPage  = "/tour/"
)

// demoPage serves a web page for each world until ctx is done. A world is a ductor with its simulated Telegram. The
// page of the first world is at firstPage. If there is a second world, its page is at tourPage.
func demoPage(ctx context.Context, opts demoOptions, worlds []*demoWorld, scratch string, out io.Writer) (err error) {
	server, err := web.Listen(opts.addr)
	if err != nil {
		return err
	}
	site := web.Site{Files: demo.Files(firstPage, tourPage)}
	api, failed := http.NewServeMux(), make(chan error, len(worlds))
	site.API = api
	var pages []*demo.Page
	for i, w := range worlds {
		page := demo.New(demo.Options{
			Telegram: w.srv, Bot: w.bot, Tour: w.scripted, Undo: w.seeded, Dir: w.bot.cfg.Projects.DefaultDir,
			Version: describe(), Log: w.bot.log,
			Other: otherPage(i, len(worlds)),
		})
		w.bot.watch, w.bot.failed = page.Happened, failed
		pages = append(pages, page)
		defer func() { err = errors.Join(err, w.bot.end()) }()
		if err = w.bot.start(ctx); err == nil {
			err = w.srv.AwaitPoll(ctx)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("start the bot: %w", err), server.Close())
		}
	}
	api.Handle(firstPage, pages[0].API())
	if len(pages) > 1 {
		api.Handle(tourPage, http.StripPrefix(strings.TrimSuffix(tourPage, "/"), pages[1].API()))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, site) }()
	fmt.Fprintf(out, "The demo is at\n\n  %s\n\n%s\n%s", server.URL(), answerer(worlds), elsewhere(server.Origin()))
	if opts.browser {
		if _, err := web.OpenBrowser(server.URL(), scratch); err != nil {
			fmt.Fprintln(out, err)
		}
	}
	select {
	case err = <-served:
	case err = <-failed:
		stop()
		err = errors.Join(err, <-served)
	}
	for _, page := range pages {
		page.Close()
	}
	return err
}

// otherPage returns the address of the other page, for a link on page i. If only one page exists (n is 1), it returns
// "".
func otherPage(i, n int) string {
	switch {
	case n == 1:
		return ""
	case i == 0:
		return tourPage
	default:
		return firstPage
	}
}

func answerer(worlds []*demoWorld) string {
	if len(worlds) == 1 {
		return "A scripted agent answers, and a tour shows what there is. Ctrl-C ends it."
	}
	return fmt.Sprintf("Your agent answers (%s), with your account. The tab Tour shows what there is with a scripted "+
		"agent, which costs\n"+
		"nothing; --scripted starts with that one alone. Ctrl-C ends it.", worlds[0].bot.cfg.Agents.Default)
}

// elsewhere returns a hint for users without a browser on this machine: how to open the page from another machine.
func elsewhere(origin string) string {
	address := strings.TrimPrefix(origin, "http://")
	port := address[strings.LastIndex(address, ":")+1:]
	host, err := os.Hostname()
	if err != nil {
		host = "THIS-MACHINE"
	}
	return fmt.Sprintf("No browser here? On the machine with one: ssh -L %s:%s %s, then open the same address there.\n",
		port, address, host)
}

// demoBot runs ductor for the demo. It can restart ductor while agents work.
type demoBot struct {
	cfg    config.Config
	srv    *telegram.Server
	log    *slog.Logger
	watch  func(demo.Event)
	failed chan error // receives the error if ductor ends unexpectedly

	mu     sync.RWMutex
	app    *app.App
	stop   context.CancelFunc
	served chan error
}

func newDemoBot(cfg config.Config, srv *telegram.Server, log *slog.Logger) *demoBot {
	return &demoBot{cfg: cfg, srv: srv, log: log, watch: func(demo.Event) {}, failed: make(chan error, 1)}
}

func (d *demoBot) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.startLocked(ctx)
}

func (d *demoBot) startLocked(ctx context.Context) error {
	a, err := app.Build(ctx, d.cfg, app.Options{
		Log: d.log, Scrub: app.NewScrubber(d.cfg), Version: describe(), Tracer: d,
		Network: app.Network{Telegram: d.srv.Client().Transport},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() {
		err := a.Run(running)
		if running.Err() == nil {
			d.failed <- err
		}
		served <- err
	}()
	d.app, d.stop, d.served = a, stop, served
	return nil
}

// Restart implements demo.Bot.
func (d *demoBot) Restart(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.app == nil {
		return errors.New("ductor has ended")
	}
	d.stop()
	err := <-d.served
	d.app.Leave()
	d.app = nil
	return errors.Join(err, d.startLocked(ctx))
}

func (d *demoBot) end() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.app == nil {
		return nil
	}
	d.stop()
	err := <-d.served
	d.app.Close()
	d.app = nil
	return err
}

// Processes implements demo.Bot. While ductor restarts, the list is empty.
func (d *demoBot) Processes(ctx context.Context) ([]demo.Process, error) {
	if !d.mu.TryRLock() {
		return nil, nil
	}
	defer d.mu.RUnlock()
	if d.app == nil {
		return nil, nil
	}
	list := []demo.Process{}
	for _, s := range d.app.Live(ctx).Sessions {
		state := "idle"
		if s.Busy {
			state = "works"
		}
		list = append(list, demo.Process{
			PID: s.PID, Agent: string(s.Agent), Chat: string(s.Conversation), State: state, Started: s.Used,
			Memory: s.Memory,
		})
	}
	return list, nil
}

// Budgets implements demo.Bot.
func (d *demoBot) Budgets() []demo.Budget {
	if !d.mu.TryRLock() {
		return nil
	}
	defer d.mu.RUnlock()
	if d.app == nil {
		return nil
	}
	list := []demo.Budget{}
	for _, b := range d.app.Budgets() {
		name := "the whole bot"
		if b.Chat != 0 {
			name = fmt.Sprint("chat ", b.Chat)
		}
		list = append(list, demo.Budget{
			Name: name, Tokens: float64(int(b.Tokens*10)) / 10, Burst: b.Rate.Burst, Every: b.Rate.Every.Seconds(),
			Usual:   b.Usual.Every.Seconds(),
			Silence: b.Silence.Round(time.Second).Seconds(),
		})
	}
	return list
}

// Begin implements orchestrator.Tracer.
func (d *demoBot) Begin(_ cli.Agent, req cli.Request) orchestrator.TurnTrace { return demoTurn{d, req} }

// demoTurn shows the events of a turn on the web page.
type demoTurn struct {
	d   *demoBot
	req cli.Request
}

func (t demoTurn) Observe(ev cli.Event) {
	kind, text, grows := describeEvent(ev)
	t.d.watch(demo.Event{
		At: time.Now(), Turn: string(t.req.Turn), Chat: string(t.req.Conversation), Kind: kind, Text: text, Grows: grows,
	})
}

func (t demoTurn) End(r cli.Result) { t.Observe(r) }

// describeEvent describes an event in a few words. It returns grows = true if the event is a part of a longer text,
// which the next event of the same kind continues.
func describeEvent(ev cli.Event) (kind, text string, grows bool) {
	switch ev := ev.(type) {
	case cli.SessionStarted:
		return "session started", fmt.Sprintf("%s · %s", ev.Model, ev.AgentSessionID), false
	case cli.TextDelta:
		return "text", ev.Text, true
	case cli.ThinkingDelta:
		return "thinking", ev.Text, true
	case cli.TextRetracted:
		return "text retracted", fmt.Sprintf("%d bytes", ev.Bytes), false
	case cli.ToolStarted:
		return "tool started", ev.Name + " " + ev.Title, false
	case cli.ToolChanged:
		return "tool changed", ev.Name + " " + ev.Title, false
	case cli.ToolEnded:
		return "tool ended", endOfTool(ev), false
	case cli.FileChanged:
		return "file changed", string(ev.Kind) + " " + ev.Path, false
	case cli.Status:
		return "status", string(ev.Kind) + " " + ev.Detail, false
	case cli.ApprovalAsked:
		return "approval asked", "", false
	case cli.HandedOver:
		return "handed over", fmt.Sprintf("%d turns, %d tokens to %s", ev.Turns, ev.Tokens, ev.To), false
	case cli.CaughtUp:
		return "caught up", "everything said while ductor was away is known", false
	case cli.Result:
		return "result", fmt.Sprintf("%d characters", len(ev.Text)), false
	default:
		return fmt.Sprintf("%T", ev), "", false
	}
}

func endOfTool(ev cli.ToolEnded) string {
	text := ev.Duration.Round(time.Millisecond).String()
	if ev.ExitCode != nil {
		text += fmt.Sprintf(" · exit code %d", *ev.ExitCode)
	}
	if ev.Err != "" {
		text += " · " + ev.Err
	}
	return text
}
