package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// limitsOf returns a directive with which a scripted agent reports that a part of the 5 hours and of the week is used.
func limitsOf(agent string, hours, week float64, reset time.Time) string {
	later := time.Now().Add(50 * time.Hour).Unix()
	json := fmt.Sprintf(`{"status":"allowed","resetsAt":%[3]d,"rateLimitType":"five_hour","unifiedWindows":{`+
		`"five_hour":{"utilization":%[1]g,"resetsAt":%[3]d},"seven_day":{"utilization":%[2]g,"resetsAt":%[4]d}}}`,
		hours, week, reset.Unix(), later)
	if agent == "codex" {
		json = fmt.Sprintf(`{"limitId":"codex","primary":{"usedPercent":%[1]g,"windowDurationMins":300,`+
			`"resetsAt":%[3]d},"secondary":{"usedPercent":%[2]g,"windowDurationMins":10080,"resetsAt":%[4]d}}`,
			100*hours, 100*week, reset.Unix(), later)
	}
	return fmt.Sprintf("[[limits %q]]", json)
}

// The chat shows how much of the plans is used, also after restarts. Above 80 % the footer says so, and the owner gets
// one alert for the window.
func TestTheLimitsOfThePlans(t *testing.T) {
	town := surroundings(t, nil)
	reset := time.Now().Add(2 * time.Hour)
	near, at := "83 % of 5 h, resets "+reset.Format("15:04"), reset.Format("15:04")
	alerts := func() (n int) {
		for _, m := range town.chat.View().FromBot() {
			n += strings.Count(m.Text, "⏳ Claude: "+near+". At 100 %")
		}
		return n
	}
	town.start()
	town.say(`%s[[text "first"]]`, limitsOf("claude", 0.61, 0.38, reset))
	if m := town.awaitDone(1); strings.Contains(m.Text, "%") {
		t.Errorf("the footer is too early: %q", m.Text)
	}
	first := "Claude: 61 % of 5 h, resets " + at + " · 38 % of the week\n"
	if m := town.answer("/usage", "by day"); !strings.HasPrefix(m, first) {
		t.Errorf("/usage begins with %.200q", m)
	}
	town.say(`%s[[text "second"]]`, limitsOf("claude", 0.83, 0.38, reset))
	if m := town.awaitDone(2); !strings.HasSuffix(m.Text, " · Claude: "+near) {
		t.Errorf("the footer of the second turn: %q", m.Text)
	}
	town.answer("/model codex", "Codex")
	town.say(`%s[[text "third"]]`, limitsOf("codex", 0.12, 0.9, reset))
	if m := town.awaitDone(3); !strings.Contains(m.Text, " · Codex: 90 % of the week, resets ") {
		t.Errorf("the footer of Codex: %q", m.Text)
	}
	for range 2 { // the alerts are checked at the start
		town.stop()
		town.start()
		town.await("⏳ Codex: 90 % of the week, resets ")
		town.await("⏳ Claude: " + near)
	}
	town.say(`%s[[text "fourth"]]`, limitsOf("codex", 0.13, 0.91, reset.Add(time.Second)))
	town.awaitDone(4)
	town.stop()
	town.start()
	both := "Claude: " + near + " · 38 % of the week\nCodex: 13 % of 5 h, resets " + at + " · 91 % of the week, resets "
	for _, command := range []string{"/status", "/usage"} {
		if m := town.answer(command, "Codex: 13"); !strings.HasPrefix(m, both) {
			t.Errorf("%s begins with %.300q", command, m)
		}
	}
	if n := alerts(); n != 1 {
		t.Errorf("the owner gets %d alerts for one window", n)
	}
}

// Codex reports only those limits that change last, so ductor asks it for the others.
func TestAllLimitsOfCodexAreRead(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Agents.Default, c.Permissions.Mode = "codex", "bypass" })
	reset := time.Now().Add(2 * time.Hour)
	other := fmt.Sprintf(`{"limitId":"other","limitName":"gpt-5.5-sonic","primary":{"usedPercent":12,`+
		`"windowDurationMins":60,"resetsAt":%d}}`, time.Now().Add(time.Hour).Unix())
	town.say(`%s[[limits %q]][[tool cmd="until test -e go; do sleep 0.02; done"]][[text "done"]]`,
		limitsOf("codex", 0.61, 0.38, reset), other)
	for deadline := time.Now().Add(patience); ; {
		m := town.answer("/usage", "by day")
		if strings.Contains(m, "12 % of 1 h (gpt-5.5-sonic)") && strings.Contains(m, "61 % of 5 h") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/usage begins with %q", m)
		}
	}
	town.makeFile("go", nil)
	town.awaitDone(1)
}

// Before the limit is reached, a running turn can be postponed until the reset.
func TestATurnIsPostponedUntilTheReset(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	var said telegram.Message
	for wait := 3 * time.Second; ; wait *= 2 { // on a slow machine the reset passes before the button or its press
		said = town.say(`%s[[text "begun"]] [[tool cmd="test -e %[2]v || { touch %[2]v; sleep 600; }"]]`,
			limitsOf("claude", 0.95, 0.5, time.Now().Add(wait)), wait)
		awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, wait.String()))
		card := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "begun") && m.HasButton("⏹ Stop")
		})
		answer := "no button"
		if button := runAtButton(card); button != "" {
			if !strings.Contains(card.Text, "Claude: 95 % of 5 h, resets ") {
				t.Errorf("the running card: %q", card.Text)
			}
			answer = town.pressOn(card, button).Text
		}
		if strings.HasPrefix(answer, "It runs at ") {
			break
		}
		if wait > time.Minute {
			t.Fatalf("the chat offers or answers %q", answer)
		}
		town.say("/abort")
		town.awaitIdle()
	}
	town.awaitAfter(said, "Aborted")
	town.checkNoTurnProcesses()
	town.awaitMessage(func(m telegram.Message) bool { // the job runs the prompt at the reset
		return strings.HasPrefix(m.Text, "⏰") && strings.Contains(m.Text, "begun") &&
			slices.ContainsFunc(strings.Split(m.Text, "\n"), isFooter)
	})
}

// A limit that cannot be true is bounded, or not shown.
func TestAbsurdLimits(t *testing.T) {
	town := newTown(t, nil)
	soon := time.Now().Add(time.Hour).Unix()
	var many strings.Builder
	for i := range 60 {
		fmt.Fprintf(&many, `"seven_day_m%03d":{"utilization":0.1,"resetsAt":%d},`, i, soon)
	}
	for _, limits := range []string{
		`{"status":"allowed","unifiedWindows":{` + many.String() + `"x":{}}}`,
		`{"unifiedWindows":{"five_hour":{"utilization":-3,"resetsAt":253402300800},"seven_day":{"utilization":1e300}}}`,
		`{"unifiedWindows":{"five_hour":{"utilization":"NaN","resetsAt":null},"seven_day":{"resetsAt":1}}}`,
		`{"status":"allowed","unifiedWindows":[]}`, `null`, `[]`, `7`,
	} {
		town.say("[[limits %q]]", limits)
	}
	town.say(`[[text "last"]]`)
	town.await("last")
	town.awaitIdle()
	m := town.answer("/usage", "by day")
	line, _, _ := strings.Cut(m, "\n")
	if !strings.HasPrefix(line, "Claude: ") || strings.Count(line, "%") > 6 || strings.Contains(m, "9999") {
		t.Errorf("/usage begins with %q", m)
	}
	for _, part := range []string{"0 % of 5 h ·", "100 % of the week ·"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q lacks %q", line, part)
		}
	}
}

// The real CLIs report the limits that their vendors' APIs send.
func TestTheLimitsOfTheRealAgents(t *testing.T) {
	realagent.LongOnly(t)
	reset, week := time.Now().Add(2*time.Hour), fmt.Sprint(time.Now().Add(50*time.Hour).Unix())
	for agent, headers := range map[string]map[string]string{
		"claude": {
			"anthropic-ratelimit-unified-status":                 "allowed_warning",
			"anthropic-ratelimit-unified-reset":                  fmt.Sprint(reset.Unix()),
			"anthropic-ratelimit-unified-representative-claim":   "five_hour",
			"anthropic-ratelimit-unified-5h-status":              "allowed_warning",
			"anthropic-ratelimit-unified-5h-reset":               fmt.Sprint(reset.Unix()),
			"anthropic-ratelimit-unified-5h-utilization":         "0.83",
			"anthropic-ratelimit-unified-5h-surpassed-threshold": "0.75",
			"anthropic-ratelimit-unified-7d-status":              "allowed",
			"anthropic-ratelimit-unified-7d-reset":               week,
			"anthropic-ratelimit-unified-7d-utilization":         "0.38",
		},
		"codex": {
			"x-codex-primary-used-percent": "83", "x-codex-primary-window-minutes": "300",
			"x-codex-primary-reset-at": fmt.Sprint(reset.Unix()), "x-codex-secondary-used-percent": "38",
			"x-codex-secondary-window-minutes": "10080", "x-codex-secondary-reset-at": week,
		},
	} {
		t.Run(agent, func(t *testing.T) {
			town, api := realSurroundings(t, agent, nil)
			if agent == "claude" { // it reads them only for a subscription
				t.Setenv("ANTHROPIC_API_KEY", "")
				t.Setenv("CLAUDE_CODE_OAUTH_TOKEN", realagent.Key)
			}
			api.SetHeaders(headers)
			town.start()
			town.say(`[[text "hello"]]`)
			name := strings.ToUpper(agent[:1]) + agent[1:]
			near := name + ": 83 % of 5 h, resets " + reset.Format("15:04")
			if m := town.awaitDone(1); !strings.HasSuffix(m.Text, " · "+near) {
				t.Errorf("the footer: %q", m.Text)
			}
			if m := town.answer("/usage", "by day"); !strings.HasPrefix(m, near+" · 38 % of the week\n") {
				t.Errorf("/usage begins with %.200q", m)
			}
		})
	}
}
