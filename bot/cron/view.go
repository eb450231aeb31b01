package cron

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Sizes of what a page shows of a job, in characters.
const (
	nameShown   = 64
	promptShown = 600
	reasonShown = 300
	runsShown   = 10
)

const help = "Say when, and then what:\n" +
	"/cron every weekday at 8:30 look at the CI\n" +
	"/cron every 2 hours check the disk\n" +
	"/cron 30 8 * * 1-5 look at the CI"

// list shows the jobs of a conversation, a page of them.
func (s *Screen) list(ctx context.Context, in orchestrator.ConversationID, page int) (tgapi.Page, error) {
	all, err := s.jobs.Jobs(ctx, in)
	if err != nil {
		return tgapi.Page{}, err
	}
	if len(all) == 0 {
		return tgapi.Page{Text: "There are no jobs in this chat.\n\n" + help}, nil
	}
	page = min(page, tgapi.Pages(len(all))-1)
	from, to := tgapi.PageBounds(page, len(all))
	lines := []string{"Jobs of this chat. A button opens one."}
	var keyboard tgapi.Keyboard
	for i, st := range all[from:to] {
		name := fmt.Sprintf("%d. %s", from+i+1, render.Cut(st.Job.Name, nameShown))
		lines = append(lines, "", sign(st)+" "+name, when(st), lastRun(st))
		keyboard = append(keyboard, []tgapi.Button{newButton(sign(st)+" "+name, opOpen, jobKey(st.Job.ID), "")})
	}
	keyboard = append(keyboard, tgapi.Pager(lang.Printer{}, page, tgapi.Pages(len(all)), func(page int) string {
		return newButton("", opList, "", strconv.Itoa(page)).Data
	})...)
	lines = append(lines, "", "A new one: /cron every weekday at 8:30 look at the CI")
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: keyboard}, nil
}

// sign is the sign before a job's name.
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

// when is the schedule, and when it is due next.
func when(st orchestrator.JobStatus) string {
	switch {
	case st.Job.Paused:
		return st.Job.When + ", paused"
	case st.Job.Kind == orchestrator.JobHook:
		return st.Job.When
	case st.Next.IsZero():
		return st.Job.When + ", never again"
	}
	next := moment(st.Next)
	if st.Job.Zone == "" {
		next += " " + st.Next.Format("MST")
	}
	return st.Job.When + ", next: " + next
}

func moment(t time.Time) string { return t.Format("Mon 2 Jan 15:04") }

// lastRun is how the last run ended.
func lastRun(st orchestrator.JobStatus) string {
	text := "never ran yet"
	if st.Last != nil {
		text = "last: " + runLine(*st.Last)
	}
	if st.Open > 0 {
		text += " · ⏳ " + render.Count(st.Open, "run waits or runs", "runs wait or run")
	}
	return text
}

// runLine is one run.
func runLine(r orchestrator.JobRun) string {
	at := r.Due
	if !r.Ended.IsZero() {
		at = r.Ended
	}
	parts := []string{stateSign(string(r.State)) + " " + moment(at)}
	if r.State == "done" && !r.Changed {
		parts = append(parts, "as before")
	}
	if r.StandsFor > 1 {
		parts = append(parts, fmt.Sprintf("for %d moments", r.StandsFor))
	}
	if r.Attempt > 1 {
		parts = append(parts, render.Count(r.Attempt, "try", "tries"))
	}
	if r.CostUSD > 0 {
		parts = append(parts, cost(r.CostUSD))
	}
	if r.Reason != "" {
		parts = append(parts, render.Cut(render.OneLine(r.Reason), reasonShown))
	}
	return strings.Join(parts, " · ")
}

func cost(usd float64) string {
	if usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

func stateSign(state string) string {
	switch state {
	case "done":
		return "✓"
	case "failed":
		return "✗ failed"
	case "aborted":
		return "⏹ stopped"
	case "skipped":
		return "⏭ skipped"
	}
	return "⏳"
}

// jobPage shows one job, with buttons that act on it.
func (s *Screen) jobPage(st orchestrator.JobStatus) tgapi.Page {
	j, key := st.Job, jobKey(st.Job.ID)
	lines := []string{sign(st) + " " + render.Cut(j.Name, nameShown), when(st), lastRun(st)}
	if st.Runs > 0 {
		total := render.Count(st.Runs, "run", "runs")
		if st.CostUSD > 0 {
			total += " for " + cost(st.CostUSD)
		}
		lines = append(lines, total+" in all")
	}
	lines = append(lines, s.settings(j)...)
	if j.Configured {
		lines = append(lines, "", "It is written in config.toml, under "+section(j)+", and is changed there.")
	}
	if j.Prompt != "" {
		lines = append(lines, "", render.Cut(strings.TrimSpace(j.Prompt), promptShown))
	}
	pause := newButton("⏸ Pause", opPause, key, "")
	if j.Paused {
		pause = newButton("▶ Resume", opResume, key, "")
	}
	keyboard := tgapi.Keyboard{{newButton("🚀 Run now", opRun, key, runsOf(st)), pause}}
	if !j.Configured {
		keyboard = append(keyboard, []tgapi.Button{newButton("✏️ Edit", opEdit, key, ""), newButton("🗑 Delete", opDelete, key, "")})
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: append(keyboard,
		[]tgapi.Button{newButton("📜 History", opHistory, key, ""), newButton("‹ All jobs", opList, "", "0")})}
}

// section names the section of the configuration that has a job.
func section(j orchestrator.Job) string {
	switch j.Kind {
	case orchestrator.JobHook:
		return "[webhooks.hooks." + render.Cut(j.Name, nameShown) + "]"
	case orchestrator.JobHeartbeat:
		return "[heartbeat]"
	}
	return "[jobs." + render.Cut(j.Name, nameShown) + "]"
}

// settings lists the rights of a job, and its fields that do not have their usual value.
func (s *Screen) settings(j orchestrator.Job) []string {
	lines := []string{RightsLine(j.Rights)}
	for _, f := range fields() {
		if f.plain != nil && !f.plain(j) {
			lines = append(lines, f.label+": "+f.value(j))
		}
	}
	return lines
}

func (s *Screen) historyPage(ctx context.Context, st orchestrator.JobStatus) (tgapi.Page, error) {
	runs, err := s.jobs.JobRuns(ctx, st.Job.ID, st.Job.Conversation, runsShown)
	if err != nil {
		return tgapi.Page{}, err
	}
	key := jobKey(st.Job.ID)
	lines := []string{"📜 " + render.Cut(st.Job.Name, nameShown), "The last runs, the newest first.", ""}
	for _, r := range runs {
		lines = append(lines, runLine(r))
	}
	if len(runs) == 0 {
		lines[1] = "It never ran yet."
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: tgapi.Keyboard{{newButton("‹ Back", opOpen, key, ""), newButton("↻ Again", opHistory, key, "")}}}, nil
}

func (s *Screen) deletePage(st orchestrator.JobStatus) tgapi.Page {
	key := jobKey(st.Job.ID)
	return tgapi.Page{
		Text:     fmt.Sprintf("Delete %q? Its history goes too. A run that is under way continues.", render.Cut(st.Job.Name, nameShown)),
		Keyboard: tgapi.Keyboard{{newButton("🗑 Yes, delete it", opDeleted, key, "")}, {newButton("‹ Keep it", opOpen, key, "")}},
	}
}
