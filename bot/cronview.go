package bot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// What the pages of /cron show.

// Sizes of what a page shows of a job, in characters.
const (
	cronNameShown   = 64
	cronPromptShown = 600
	cronReasonShown = 300
	cronRunsShown   = 10
)

const cronHelp = "Say when, and then what:\n" +
	"/cron every weekday at 8:30 look at the CI\n" +
	"/cron every 2 hours check the disk\n" +
	"/cron 30 8 * * 1-5 look at the CI"

// list shows the jobs of a conversation, a page of them.
func (k *crons) list(ctx context.Context, in orchestrator.ConversationID, page int) (cronPage, error) {
	all, err := k.jobs.Jobs(ctx, in)
	if err != nil {
		return cronPage{}, err
	}
	if len(all) == 0 {
		return cronPage{text: "There are no jobs in this chat: nothing is asked by itself.\n\n" + cronHelp}, nil
	}
	page = min(page, pagesOf(len(all))-1)
	from, to := pageBounds(page, len(all))
	lines := []string{"Jobs of this chat. A button opens one."}
	var keyboard tgapi.Keyboard
	for i, st := range all[from:to] {
		name := fmt.Sprintf("%d. %s", from+i+1, render.Cut(st.Job.Name, cronNameShown))
		lines = append(lines, "", cronMark(st)+" "+name, cronWhen(st), cronLast(st))
		keyboard = append(keyboard, []tgapi.Button{cronButton(cronMark(st)+" "+name, cronOpen, jobKey(st.Job.ID), "")})
	}
	if pages := pagesOf(len(all)); pages > 1 {
		keyboard = append(keyboard, cronPager(page, pages))
	}
	lines = append(lines, "", "A new one: /cron every weekday at 8:30 look at the CI")
	return cronPage{strings.Join(lines, "\n"), keyboard}, nil
}

func cronPager(page, pages int) []tgapi.Button {
	var row []tgapi.Button
	if page > 0 {
		row = append(row, cronButton("‹", cronList, "", strconv.Itoa(page-1)))
	}
	row = append(row, cronButton(fmt.Sprintf("%d of %d", page+1, pages), cronList, "", strconv.Itoa(page)))
	if page+1 < pages {
		row = append(row, cronButton("›", cronList, "", strconv.Itoa(page+1)))
	}
	return row
}

// cronMark is the sign before a job's name.
func cronMark(st orchestrator.JobStatus) string {
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

// cronWhen is the schedule, and when it is due next.
func cronWhen(st orchestrator.JobStatus) string {
	switch {
	case st.Job.Paused:
		return st.Job.When + ", paused"
	case st.Job.Kind == orchestrator.JobHook:
		return st.Job.When
	case st.Next.IsZero():
		return st.Job.When + ", never again"
	}
	next := cronMoment(st.Next)
	if st.Job.Zone == "" {
		next += " " + st.Next.Format("MST")
	}
	return st.Job.When + ", next: " + next
}

func cronMoment(t time.Time) string { return t.Format("Mon 2 Jan 15:04") }

// cronLast is how the last run ended.
func cronLast(st orchestrator.JobStatus) string {
	text := "never ran yet"
	if st.Last != nil {
		text = "last: " + cronRunLine(*st.Last)
	}
	if st.Open > 0 {
		text += " · ⏳ " + render.Count(st.Open, "run waits or runs", "runs wait or run")
	}
	return text
}

// cronRunLine is one run.
func cronRunLine(r orchestrator.JobRun) string {
	at := r.Due
	if !r.Ended.IsZero() {
		at = r.Ended
	}
	parts := []string{cronState(string(r.State)) + " " + cronMoment(at)}
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
		parts = append(parts, cronCost(r.CostUSD))
	}
	if r.Reason != "" {
		parts = append(parts, render.Cut(render.OneLine(r.Reason), cronReasonShown))
	}
	return strings.Join(parts, " · ")
}

func cronCost(usd float64) string {
	if usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

func cronState(state string) string {
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

// jobPage shows one job, with what can be done about it.
func (k *crons) jobPage(st orchestrator.JobStatus) cronPage {
	j, key := st.Job, jobKey(st.Job.ID)
	lines := []string{cronMark(st) + " " + render.Cut(j.Name, cronNameShown), cronWhen(st), cronLast(st)}
	if st.Runs > 0 {
		total := render.Count(st.Runs, "run", "runs")
		if st.CostUSD > 0 {
			total += " for " + cronCost(st.CostUSD)
		}
		lines = append(lines, total+" in all")
	}
	lines = append(lines, k.settings(j)...)
	if j.Configured {
		lines = append(lines, "", "It is written in config.toml, under "+cronSection(j)+", and is changed there.")
	}
	if j.Prompt != "" {
		lines = append(lines, "", render.Cut(strings.TrimSpace(j.Prompt), cronPromptShown))
	}
	pause := cronButton("⏸ Pause", cronPause, key, "")
	if j.Paused {
		pause = cronButton("▶ Resume", cronResume, key, "")
	}
	keyboard := tgapi.Keyboard{{cronButton("🚀 Run now", cronRun, key, runsOf(st)), pause}}
	if !j.Configured {
		keyboard = append(keyboard, []tgapi.Button{cronButton("✏️ Edit", cronEdit, key, ""), cronButton("🗑 Delete", cronDelete, key, "")})
	}
	return cronPage{strings.Join(lines, "\n"), append(keyboard,
		[]tgapi.Button{cronButton("📜 History", cronHistory, key, ""), cronButton("‹ All jobs", cronList, "", "0")})}
}

// cronSection is where the configuration has a job.
func cronSection(j orchestrator.Job) string {
	switch j.Kind {
	case orchestrator.JobHook:
		return "[webhooks.hooks." + render.Cut(j.Name, cronNameShown) + "]"
	case orchestrator.JobHeartbeat:
		return "[heartbeat]"
	}
	return "[jobs." + render.Cut(j.Name, cronNameShown) + "]"
}

// settings says what a job may do, and what it has otherwise than most.
func (k *crons) settings(j orchestrator.Job) []string {
	lines := []string{rightsLine(j.Rights)}
	for _, f := range jobFields() {
		if f.plain != nil && !f.plain(j) {
			lines = append(lines, f.label+": "+f.value(j))
		}
	}
	return lines
}

func (k *crons) historyPage(ctx context.Context, st orchestrator.JobStatus) (cronPage, error) {
	runs, err := k.jobs.JobRuns(ctx, st.Job.ID, st.Job.Conversation, cronRunsShown)
	if err != nil {
		return cronPage{}, err
	}
	key := jobKey(st.Job.ID)
	lines := []string{"📜 " + render.Cut(st.Job.Name, cronNameShown), "The last runs, the newest first.", ""}
	for _, r := range runs {
		lines = append(lines, cronRunLine(r))
	}
	if len(runs) == 0 {
		lines[1] = "It never ran yet."
	}
	return cronPage{strings.Join(lines, "\n"), tgapi.Keyboard{{cronButton("‹ Back", cronOpen, key, ""), cronButton("↻ Again", cronHistory, key, "")}}}, nil
}

func (k *crons) deletePage(st orchestrator.JobStatus) cronPage {
	key := jobKey(st.Job.ID)
	return cronPage{
		fmt.Sprintf("Delete %q? Its history goes too. What runs of it goes on.", render.Cut(st.Job.Name, cronNameShown)),
		tgapi.Keyboard{{cronButton("🗑 Yes, delete it", cronDeleted, key, "")}, {cronButton("‹ Keep it", cronOpen, key, "")}},
	}
}
