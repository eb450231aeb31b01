package cron

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Limits of a page. All except runsShown are lengths of texts in characters.
const (
	nameShown   = 64
	promptShown = 600
	reasonShown = 300
	runsShown   = 10
)

// list returns one page of the list of jobs.
func (s *Screen) list(ctx context.Context, in orchestrator.ConversationID, page int) (tgapi.Page, error) {
	p := s.o.Lang.Of(in.Chat)
	all, err := s.o.Jobs.Jobs(ctx, in)
	if err != nil {
		return tgapi.Page{}, err
	}
	if len(all) == 0 {
		return tgapi.Page{Text: p.Text("cron.none") + "\n\n" + p.Text("cron.examples")}, nil
	}
	from, to, pager := tgapi.Paged(p, page, len(all), func(page int) string {
		return newButton("", opList, "", strconv.Itoa(page)).Data
	})
	lines := []string{p.Text("cron.list")}
	var keyboard tgapi.Keyboard
	for i, st := range all[from:to] {
		name := fmt.Sprintf("%d. %s", from+i+1, render.Cut(st.Job.Name, nameShown))
		lines = append(lines, "", sign(st)+" "+name, when(p, st), lastRun(p, st))
		keyboard = append(keyboard, []tgapi.Button{newButton(sign(st)+" "+name, opOpen, jobKey(st.Job.ID), "")})
	}
	lines = append(lines, "", p.Text("cron.add-one"))
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: append(keyboard, pager...)}, nil
}

// sign returns the symbol in front of a job's name.
func sign(st orchestrator.JobStatus) string {
	switch {
	case st.Job.Paused:
		return "⏸"
	case st.Job.Kind == orchestrator.JobHook:
		return "🪝"
	case st.Job.Kind == orchestrator.JobHeartbeat:
		return "💓"
	}
	return "⏰"
}

// when returns a text about the schedule and the next run of a job.
func when(p lang.Printer, st orchestrator.JobStatus) string {
	schedule := st.Job.When
	if st.Job.Kind == orchestrator.JobHook {
		schedule = p.Text("cron.on-webhook")
	}
	switch {
	case st.Job.Paused:
		return p.Text("cron.paused", schedule)
	case st.Job.Kind == orchestrator.JobHook:
		return schedule
	case st.Next.IsZero():
		return p.Text("cron.never-again", schedule)
	}
	zone := ""
	if st.Job.Zone == "" {
		zone = " " + st.Next.Format("MST")
	}
	if strings.HasPrefix(st.Job.Schedule, "at ") { // the schedule is the time of the only run
		return schedule + zone
	}
	return p.Text("cron.next", schedule, p.Moment(st.Next)+zone)
}

func lastRun(p lang.Printer, st orchestrator.JobStatus) string {
	var parts []string
	switch {
	case st.Last != nil:
		parts = append(parts, p.Text("cron.last-run", runLine(p, *st.Last)))
	case st.Oldest == nil || st.Oldest.Tries() == 0:
		parts = append(parts, p.Text("cron.never-ran"))
	}
	if st.Open > 0 {
		parts = append(parts, "⏳ "+p.Text("cron.open-runs", st.Open))
	}
	if r := st.Oldest; r != nil && waitsForRetry(*r) {
		parts = append(parts, triesText(p, *r))
	}
	return strings.Join(parts, " · ")
}

// LaterLines returns a line with the time at which ductor will next run a prompt again after a usage limit. It returns
// nothing if the conversation has no orchestrator.LaterJob, or if the jobs cannot be loaded.
func (s *Screen) LaterLines(ctx context.Context, in orchestrator.ConversationID) []string {
	if s.o.Jobs == nil {
		return nil
	}
	all, err := s.o.Jobs.Jobs(ctx, in)
	if err != nil {
		s.o.Log.Error("list jobs for the status", "err", err)
		return nil
	}
	all = slices.DeleteFunc(all, func(st orchestrator.JobStatus) bool {
		_, later := st.Job.ID.Repeats()
		return !later || st.Next.IsZero()
	})
	if len(all) == 0 {
		return nil
	}
	next := slices.MinFunc(all, func(a, b orchestrator.JobStatus) int { return a.Next.Compare(b.Next) }).Next
	p := s.o.Lang.Of(in.Chat)
	return []string{p.Text("status.later", p.Clock(next.Local(), s.o.Now()))}
}

// waitsForRetry reports whether an attempt of the run has failed and another one follows.
func waitsForRetry(r orchestrator.JobRun) bool {
	return r.State == orchestrator.RunWaiting && r.Tries() > 0
}

// triesText returns how many attempts a run has made, and when it makes the next one.
func triesText(p lang.Printer, r orchestrator.JobRun) string {
	if waitsForRetry(r) {
		return p.Text("cron.failed-tries", r.Tries(), p.Moment(r.NotBefore))
	}
	return p.Text("cron.tries", r.Tries())
}

// runLine describes a run in one line.
func runLine(p lang.Printer, r orchestrator.JobRun) string {
	at := r.Due
	if !r.Ended.IsZero() {
		at = r.Ended
	}
	parts := []string{stateSign(p, string(r.State)) + " " + p.Moment(at)}
	if r.State == "done" && !r.Result.Changed {
		parts = append(parts, p.Text("cron.unchanged"))
	}
	if r.StandsFor > 1 {
		parts = append(parts, p.Text("cron.stands-for", r.StandsFor))
	}
	if r.Attempt > 1 {
		parts = append(parts, triesText(p, r))
	}
	if r.Result.CostUSD > 0 {
		parts = append(parts, p.Cost(r.Result.CostUSD))
	}
	if reason := r.Result.Explain(p); reason != "" {
		parts = append(parts, render.Cut(render.OneLine(reason), reasonShown))
	}
	return strings.Join(parts, " · ")
}

func stateSign(p lang.Printer, state string) string {
	switch state {
	case "done":
		return "✓"
	case "failed":
		return p.Text("cron.failed")
	case "aborted":
		return p.Text("cron.stopped")
	case "skipped":
		return p.Text("cron.skipped")
	}
	return "⏳"
}

// jobPage returns the page of a job, with its buttons.
func (s *Screen) jobPage(st orchestrator.JobStatus) tgapi.Page {
	p := s.o.Lang.Of(st.Job.Conversation.Chat)
	j, key := st.Job, jobKey(st.Job.ID)
	lines := []string{sign(st) + " " + render.Cut(j.Name, nameShown), when(p, st), lastRun(p, st)}
	switch {
	case st.Runs > 0 && st.CostUSD > 0:
		lines = append(lines, p.Text("cron.runs-cost", st.Runs, p.Cost(st.CostUSD)))
	case st.Runs > 0:
		lines = append(lines, p.Text("cron.runs", st.Runs))
	}
	lines = append(lines, s.settings(j)...)
	if j.Configured {
		lines = append(lines, "", p.Text("cron.in-config", section(j)))
	}
	lines = append(lines, promptLines(j)...)
	pause := newButton(p.Text("cron.pause"), opPause, key, "")
	if j.Paused {
		pause = newButton(p.Text("cron.resume"), opResume, key, "")
	}
	keyboard := tgapi.Keyboard{{newButton(p.Text("cron.run-now"), opRun, key, runsOf(st)), pause}}
	if !j.Configured {
		keyboard = append(keyboard, []tgapi.Button{newButton(p.Text("cron.edit"), opEdit, key, ""),
			newButton(p.Text("cron.delete"), opDelete, key, "")})
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: append(keyboard,
		[]tgapi.Button{newButton(p.Text("cron.history"), opHistory, key, ""),
			newButton(p.Text("cron.all-jobs"), opList, "", "0")})}
}

// promptLines returns the prompt of a job for its page. It returns nothing if the job's name is the whole prompt,
// because the page already shows the name.
func promptLines(j orchestrator.Job) []string {
	prompt := strings.TrimSpace(j.Prompt)
	if prompt == "" || prompt == render.Cut(j.Name, nameShown) {
		return nil
	}
	return []string{"", render.Cut(prompt, promptShown)}
}

// section returns the name of a job's section in the configuration file.
func section(j orchestrator.Job) string {
	switch j.Kind {
	case orchestrator.JobHook:
		return "[webhooks.hooks." + render.Cut(j.Name, nameShown) + "]"
	case orchestrator.JobHeartbeat:
		return "[heartbeat]"
	}
	return "[jobs." + render.Cut(j.Name, nameShown) + "]"
}

// settings describes the rights of a job, and all fields whose values are not the defaults.
func (s *Screen) settings(j orchestrator.Job) []string {
	p := s.o.Lang.Of(j.Conversation.Chat)
	lines := []string{rightsLine(p, j.Rights)}
	for _, f := range fields(p) {
		if f.plain != nil && !f.plain(j) {
			lines = append(lines, f.label+": "+f.value(j))
		}
	}
	return lines
}

func (s *Screen) historyPage(ctx context.Context, st orchestrator.JobStatus) (tgapi.Page, error) {
	p := s.o.Lang.Of(st.Job.Conversation.Chat)
	runs, err := s.o.Jobs.JobRuns(ctx, st.Job.ID, st.Job.Conversation, runsShown)
	if err != nil {
		return tgapi.Page{}, err
	}
	key := jobKey(st.Job.ID)
	lines := []string{"📜 " + render.Cut(st.Job.Name, nameShown), p.Text("cron.last-runs"), ""}
	for _, r := range runs {
		lines = append(lines, runLine(p, r))
	}
	if len(runs) == 0 {
		lines[1] = p.Text("cron.no-runs")
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"),
		Keyboard: tgapi.Keyboard{{newButton(p.Text("common.back"), opOpen, key, ""),
			newButton(p.Text("cron.refresh"), opHistory, key, "")}}}, nil
}

func (s *Screen) deletePage(st orchestrator.JobStatus) tgapi.Page {
	p := s.o.Lang.Of(st.Job.Conversation.Chat)
	key := jobKey(st.Job.ID)
	return tgapi.Page{
		Text: p.Text("cron.confirm-delete", render.Cut(st.Job.Name, nameShown)),
		Keyboard: tgapi.Keyboard{{newButton(p.Text("cron.confirm-delete-yes"), opDeleted, key, "")},
			{newButton(p.Text("cron.confirm-delete-no"), opOpen, key, "")}},
	}
}
