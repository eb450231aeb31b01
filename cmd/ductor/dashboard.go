package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ductor/cli"
	"ductor/cmd/ductor/sub"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/web"
	"ductor/web/dashboard"
)

func dashboardCommand(env config.Environment) *cobra.Command {
	var from *source
	var addr string
	var browser bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Show in the browser what ductor does and did (read-only)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := from.readParts(cmd.ErrOrStderr(), "storage", "agents")
			if err == nil {
				cfg, err = from.withKeys(cfg)
			}
			if err != nil {
				return err
			}
			db, err := store.OpenReadOnly(cmd.Context(), filepath.Join(cfg.Storage.Dir, app.DatabaseFile),
				store.Options{})
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is nothing to show before the first `ductor run`: %w", err)
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			return serveDashboard(cmd.Context(), &overview{cfg: cfg, db: db, from: from}, addr, browser,
				cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "listen on this address of this machine")
	cmd.Flags().BoolVar(&browser, "open", true, "open the browser, if there is a screen")
	from = sourceOf(cmd, env)
	return cmd
}

func serveDashboard(ctx context.Context, o *overview, addr string, browser bool, out, stderr io.Writer) (err error) {
	server, err := web.Listen(addr)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "ductor-dashboard-")
	if err != nil {
		return errors.Join(err, server.Close())
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	fmt.Fprintf(out, "The dashboard is at\n\n  %s\n\nOpen it in a browser on this machine. Ctrl-C ends it.\n%s",
		server.URL(), elsewhere(server.Origin()))
	if browser {
		if _, err := web.OpenBrowser(server.URL(), scratch); err != nil {
			fmt.Fprintln(out, err)
		}
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asking.Go(func() { o.askAgents(ctx) })
	scrub := app.NewScrubber(o.cfg)
	return server.Serve(ctx, dashboard.Site(o.look, slog.New(scrub.Handler(slog.NewTextHandler(stderr, nil)))))
}

// overview collects the contents of the dashboard. It changes nothing.
type overview struct {
	cfg  config.Config
	db   *store.DB
	from *source

	mu     sync.Mutex
	agents []dashboard.Agent
}

// askEvery is how often the dashboard checks whether the agents are logged in. Each check starts a process for each
// agent.
const askEvery = 5 * time.Minute

func (o *overview) askAgents(ctx context.Context) {
	for {
		var agents []dashboard.Agent
		err := app.WithProbes(o.cfg, func(all []cli.Provider) {
			for _, p := range all {
				s := app.ProbeAgent(ctx, o.cfg, p)
				agents = append(agents, dashboard.Agent{Name: string(s.Agent), OK: s.Usable(), Text: s.String()})
			}
		})
		if err != nil {
			agents = append(agents, dashboard.Agent{Name: "agents", Text: err.Error()})
		}
		o.mu.Lock()
		o.agents = agents
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(askEvery):
		}
	}
}

// Maximum numbers of days and of rows in the lists of the dashboard.
const (
	plotDays     = 14
	usedDays     = 30
	auditDays    = 7
	mostCards    = 60
	mostDecision = 50
)

func (o *overview) look(ctx context.Context) (v dashboard.Overview, err error) {
	now := time.Now()
	o.mu.Lock()
	agents := o.agents
	o.mu.Unlock()
	v = dashboard.Overview{At: now, Version: describe(), Agents: append([]dashboard.Agent{}, agents...)}
	for _, part := range []func(context.Context, time.Time, *dashboard.Overview) error{o.health, o.conversations,
		o.processes, o.jobs, o.decisions, o.days} {
		if err := part(ctx, now, &v); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (o *overview) health(ctx context.Context, _ time.Time, v *dashboard.Overview) error {
	pid, runs := app.StorageUser(o.cfg.Storage.Dir)
	running := dashboard.Part{Name: "ductor", OK: runs, Text: "does not run; start it with `ductor run`"}
	if runs {
		running.Text = fmt.Sprintf("runs as process %d", pid)
	}
	load, err := o.db.Load(ctx)
	if err != nil {
		return err
	}
	v.Health = []dashboard.Part{running, {Name: "Work", OK: true,
		Text: fmt.Sprintf("turns: %d running, %d waiting; approvals waiting: %d; runs of jobs: %d open",
			load.Running, load.Queued, load.Approvals, load.JobRuns)}}
	troubles, err := o.db.Alerts(ctx)
	for _, a := range troubles {
		v.Health = append(v.Health, dashboard.Part{Name: "Trouble: " + a.Kind,
			Text: a.Key + ", since " + a.Since.Local().Format(time.DateTime)})
	}
	return err
}

func (o *overview) conversations(ctx context.Context, now time.Time, v *dashboard.Overview) error {
	rows, err := o.db.Usage(ctx, orchestrator.UsageQuery{Since: now.AddDate(0, 0, -usedDays),
		By: orchestrator.UsageByConversation})
	if err != nil {
		return err
	}
	open, err := o.db.OpenTurns(ctx)
	if err != nil {
		return err
	}
	v.Conversations = []dashboard.Conversation{}
	for _, r := range rows[:min(len(rows), mostCards)] {
		var id orchestrator.ConversationID
		if _, err := fmt.Sscanf(r.Name, "%d/%d", &id.Chat, &id.Topic); err != nil {
			return fmt.Errorf("read the name of a conversation: %w", err)
		}
		c := dashboard.Conversation{Name: chatName(id), Turns: r.Turns, Tokens: r.Tokens, Cost: r.CostUSD}
		found, _, err := o.db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: id, Limit: 1})
		if err != nil {
			return err
		}
		if len(found) > 0 {
			c.Title, c.Dir, c.Used = found[0].Session.Title, found[0].Session.Dir, found[0].Session.Used
		}
		for _, t := range open {
			switch {
			case t.Prompt.Conversation != id:
			case t.State == orchestrator.TurnRunning:
				c.Running++
			case t.State == orchestrator.TurnQueued:
				c.Queued++
			}
		}
		v.Conversations = append(v.Conversations, c)
	}
	slices.SortStableFunc(v.Conversations, func(a, b dashboard.Conversation) int { return b.Used.Compare(a.Used) })
	return nil
}

// chatName returns the name of a conversation, in the same form as in `ductor audit`.
func chatName(id orchestrator.ConversationID) string {
	if id == (orchestrator.ConversationID{}) {
		return "no chat"
	}
	return "chat " + string(id.Key())
}

func (o *overview) processes(ctx context.Context, _ time.Time, v *dashboard.Overview) error {
	v.Processes = []dashboard.Process{}
	err := withRuns(ctx, o.from, io.Discard, func(envs []environment.Runs) error {
		runs, err := listRuns(ctx, envs, io.Discard)
		for _, run := range runs {
			if run.Alive {
				v.Processes = append(v.Processes, dashboard.Process{
					PID: run.PID, Agent: agentOf(run.Info), Chat: string(purposeOf(run.Info).Conversation),
					Where: cmp.Or(run.at.Name, "host"),
					State: stateOf(run), Started: run.Started, Memory: run.Memory,
				})
			}
		}
		return err
	})
	if errors.Is(err, errNoRuns) {
		return nil
	}
	return err
}

func (o *overview) jobs(ctx context.Context, _ time.Time, v *dashboard.Overview) error {
	all, err := o.db.Jobs(ctx)
	v.Jobs = []dashboard.Job{}
	for _, j := range all {
		one := dashboard.Job{Name: j.Job.Name, State: "enabled", Next: j.Next, Runs: j.Runs, Cost: j.CostUSD}
		switch {
		case j.Job.Paused:
			one.State = "paused"
		case j.Open > 0:
			one.State = "runs"
		}
		if j.Last != nil {
			one.Last, one.Result, one.Failed = j.Last.Ended, string(j.Last.State),
				j.Last.State == orchestrator.RunFailed
			if why := j.Last.Result.Explain(lang.Printer{}); why != "" {
				one.Result += ": " + why
			}
		}
		v.Jobs = append(v.Jobs, one)
	}
	return err
}

func (o *overview) decisions(ctx context.Context, now time.Time, v *dashboard.Overview) error {
	open, err := o.db.OpenApprovals(ctx)
	if err != nil {
		return err
	}
	v.Waiting, v.Decisions = []dashboard.Decision{}, []dashboard.Decision{}
	for _, a := range open {
		d := dashboard.Decision{At: a.Asked, Chat: chatName(a.Conversation), Agent: string(a.Agent), What: "waits",
			Of: "a question"}
		if a.Request != nil {
			d.Of = strings.TrimSpace(a.Request.Tool + " " + a.Request.Title)
		}
		v.Waiting = append(v.Waiting, d)
	}
	entries, err := o.db.AuditSince(ctx, now.AddDate(0, 0, -auditDays), mostDecision)
	for _, e := range entries {
		d := dashboard.Decision{
			At: e.At, Chat: chatName(e.Conversation), Agent: string(e.Agent), What: string(e.What),
			Of: sub.PlainLine(strings.TrimSpace(e.Tool + " " + e.Title)),
		}
		if e.By != 0 {
			d.By = fmt.Sprint(e.By)
		}
		v.Decisions = append(v.Decisions, d)
	}
	return err
}

func (o *overview) days(ctx context.Context, now time.Time, v *dashboard.Overview) error {
	y, m, d := now.Local().Date()
	first := time.Date(y, m, d-plotDays+1, 0, 0, 0, 0, time.Local)
	rows, err := o.db.Usage(ctx, orchestrator.UsageQuery{Since: first, By: orchestrator.UsageByDay})
	used := map[string]orchestrator.UsageRow{}
	for _, r := range rows {
		used[r.Name] = r
	}
	for i := range plotDays {
		day := first.AddDate(0, 0, i).Format(time.DateOnly)
		v.Days = append(v.Days, dashboard.Day{Day: day, Turns: used[day].Turns, Tokens: used[day].Tokens,
			Cost: used[day].CostUSD})
	}
	return err
}
