package config

import (
	"slices"
	"strings"
	"time"
)

// The words that settings may be.
func groupMembers() []string { return []string{"listed", "all"} }
func groupTriggers() []string {
	return []string{"mention", "all"}
}
func footers() []string         { return []string{"model", "time", "cost", "tokens"} }
func modes() []string           { return []string{"live", "one-shot"} }
func approvers() []string       { return []string{"sender", "members"} }
func sandboxes() []string       { return []string{"read-only", "workspace-write", "danger-full-access"} }
func permissionModes() []string { return []string{"plan", "ask", "accept-edits", "auto", "bypass"} }
func limitPolicies() []string   { return []string{"ask", "wait", "handoff"} }
func logLevels() []string       { return []string{"debug", "info", "warn", "error"} }
func logFormats() []string      { return []string{"text", "json"} }
func ownAgents() []string       { return []string{agentClaude, agentCodex, agentGemini, agentCopilot} }

func (c *Config) checkWords(p *problems) {
	for _, w := range []struct {
		key, value string
		choices    []string
	}{
		{"telegram.group_members", c.Telegram.GroupMembers, groupMembers()},
		{"telegram.group_trigger", c.Telegram.GroupTrigger, groupTriggers()},
		{"permissions.mode", c.Permissions.Mode, permissionModes()},
		{"agents.claude.mode", c.Agents.Claude.Mode, modes()},
		{"agents.codex.mode", c.Agents.Codex.Mode, modes()},
		{"agents.gemini.mode", c.Agents.Gemini.Mode, modes()},
		{"agents.copilot.mode", c.Agents.Copilot.Mode, modes()},
		{"stream.mode", c.Stream.Mode, []string{"edit", "draft"}},
		{"stream.display", c.Stream.Display, []string{"ask", "rich", "plain"}},
		{"notify.mode", c.Notify.Mode, []string{"always", "long", "never"}},
		{"permissions.approvers", c.Permissions.Approvers, approvers()},
		{"agents.codex.sandbox", c.Agents.Codex.Sandbox, sandboxes()},
		{"recovery.rate_limited", c.Recovery.RateLimited, limitPolicies()},
		{"log.level", c.Log.Level, logLevels()},
		{"log.format", c.Log.Format, logFormats()},
	} {
		if !slices.Contains(w.choices, w.value) {
			p.add(w.key, "%s", oneOf(w.value, w.choices))
		}
	}
	for i, w := range c.Stream.Footer {
		switch {
		case !slices.Contains(footers(), w):
			p.add("stream.footer", "%s", oneOf(w, footers()))
		case slices.Contains(c.Stream.Footer[:i], w):
			p.add("stream.footer", "%q is there twice", w)
		}
	}
	if at := c.Sessions.DailyReset; at != "" {
		if _, err := time.Parse("15:04", at); err != nil {
			p.add("sessions.daily_reset", `%q should be a time of day such as "04:00", or empty for never`, at)
		}
	}
}

func (c *Config) checkNumbers(p *problems) {
	for _, n := range []struct {
		key        string
		value      int
		least, top int
	}{
		{"stream.min_chars", c.Stream.MinChars, 1, 4096},
		{"stream.max_chars", c.Stream.MaxChars, 1, 100_000},
		{"stream.max_messages", c.Stream.MaxMessages, 0, 100},
		{"queue.max", c.Queue.Max, 1, 1000},
		{"sessions.handoff_tokens", c.Sessions.HandoffTokens, 0, 1_000_000},
		{"recovery.retries", c.Recovery.Retries, 0, 10},
		{"recovery.failures", c.Recovery.Failures, 0, 100},
		{"agents.max_live", c.Agents.MaxLive, 0, 256},
		{"agents.max_memory_mb", c.Agents.MaxMemoryMB, 0, 1 << 20},
		{"storage.uploads_max_mb", c.Storage.UploadsMaxMB, 1, 20},
		{"storage.retention_days", c.Storage.RetentionDays, 1, 3650},
		{"rate.private_burst", c.Rate.PrivateBurst, 0, 100},
	} {
		if n.value < n.least || n.value > n.top {
			p.add(n.key, "%d is out of bounds; it may be %d to %d", n.value, n.least, n.top)
		}
	}
	if c.Stream.MaxChars < c.Stream.MinChars {
		p.add("stream.max_chars", "%d is less than min_chars, which is %d", c.Stream.MaxChars, c.Stream.MinChars)
	}
	for _, n := range []struct {
		key   string
		value float64
		top   float64
	}{
		{"rate.private_per_second", c.Rate.PrivatePerSecond, 100},
		{"rate.group_per_minute", c.Rate.GroupPerMinute, 6000},
		{"rate.overall_per_second", c.Rate.OverallPerSecond, 1000},
		{"budget.day", c.Budget.Day, 1e6},
		{"budget.month", c.Budget.Month, 1e6},
		{"budget.user_day", c.Budget.UserDay, 1e6},
		{"budget.user_month", c.Budget.UserMonth, 1e6},
		{"budget.job_day", c.Budget.JobDay, 1e6},
		{"budget.job_month", c.Budget.JobMonth, 1e6},
	} {
		// Written so that a number that is none fails too.
		if n.value != 0 && !(n.value >= 0.01 && n.value <= n.top) {
			p.add(n.key, "%v is out of bounds; it may be 0.01 to %v", n.value, n.top)
		}
	}
}

func (c *Config) checkDurations(p *problems) {
	const day = 24 * time.Hour
	for _, d := range []struct {
		key        string
		value      time.Duration
		least, top time.Duration
	}{
		{"stream.interval_private", c.Stream.IntervalPrivate, 100 * time.Millisecond, time.Minute},
		{"stream.interval_group", c.Stream.IntervalGroup, 100 * time.Millisecond, time.Minute},
		{"stream.idle", c.Stream.Idle, 0, time.Minute},
		{"stream.status_after", c.Stream.StatusAfter, 0, time.Hour},
		{"notify.long", c.Notify.Long, time.Second, day},
		{"notify.silence", c.Notify.Silence, 0, day},
		{"queue.merge_window", c.Queue.MergeWindow, 0, 10 * time.Second},
		{"queue.album_window", c.Queue.AlbumWindow, 0, 10 * time.Second},
		{"sessions.idle_reset", c.Sessions.IdleReset, 0, 3650 * day},
		{"recovery.retry_after", c.Recovery.RetryAfter, time.Second, 10 * time.Minute},
		{"agents.idle_limit", c.Agents.IdleLimit, time.Second, 30 * day},
		{"agents.turn_timeout", c.Agents.TurnTimeout, time.Second, 7 * day},
		{"agents.stall", c.Agents.Stall, time.Second, day},
		{"agents.tool_stall", c.Agents.ToolStall, time.Second, 7 * day},
		{"agents.grace", c.Agents.Grace, 0, time.Minute},
		{"agents.stale_after", c.Agents.StaleAfter, time.Minute, 30 * day},
		{"voice.timeout", c.Voice.Timeout, time.Second, time.Hour},
		{"permissions.ask_timeout", c.Permissions.AskTimeout, 10 * time.Second, 7 * day},
		{"agents.orphan_after", c.Agents.OrphanAfter, time.Second, 30 * day},
	} {
		if d.value < d.least || d.value > d.top {
			p.add(d.key, "%s is out of bounds; it may be %s to %s", d.value, short(d.least), short(d.top))
		}
	}
	if a := c.Agents; a.StaleAfter <= a.TurnTimeout {
		p.add("agents.stale_after", "%s must be longer than turn_timeout, which is %s: else running turns count as stale", short(a.StaleAfter), short(a.TurnTimeout))
	}
}

// short drops the zero units that Duration.String writes.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
