package approval

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// shell is the effect of a command in the agent's own shell.
var shell = cli.Effect{Shell: cli.ShellRoutine}

func anApproval() orchestrator.Approval {
	return orchestrator.Approval{
		ID: "q1", Nonce: "n1", Decision: orchestrator.Decision{State: orchestrator.ApprovalOpen},
		ApprovalRequest: orchestrator.ApprovalRequest{Agent: "claude", AgentIDs: []cli.ApprovalID{"x"},
			Request: &cli.ApprovalAsked{Tool: "Bash", Effect: shell, Title: "git status --short"}},
		ApprovalTerms: orchestrator.ApprovalTerms{SessionRule: "Bash(git status --short)", Rule: "Bash(git status *)",
			Expires: time.Date(2026, 1, 2, 15, 4, 0, 0, time.Local)},
	}
}

// drawMessage returns a message followed by its buttons, one row a line.
func drawMessage(t render.Text, k tgapi.Keyboard) string {
	var b strings.Builder
	b.WriteString(t.Text)
	for _, row := range k {
		b.WriteString("\n")
		for _, button := range row {
			b.WriteString("[" + button.Text + " " + button.Data + "]")
		}
	}
	return b.String()
}

const openButtons = "\n[✅ Allow once a:q1:n1:1][⛔ Deny a:q1:n1:d]" +
	"\n[Allow this session… a:q1:n1:s][Allow pattern… a:q1:n1:p]\n[Deny with reason… a:q1:n1:r]"

func TestApproval(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, c := range []struct {
		name   string
		change func(a *orchestrator.Approval)
		want   string
	}{
		{"open", func(*orchestrator.Approval) {},
			"🔐 May Claude run this command?\ngit status --short\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"several at once", func(a *orchestrator.Approval) { a.AgentIDs = []cli.ApprovalID{"x", "y", "z"} },
			"🔐 May Claude run this command?\ngit status --short\nYour answer counts for 3 identical requests.\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"no rule to offer, a reason", func(a *orchestrator.Approval) {
			a.SessionRule, a.Rule, a.Request.Reason = "", "", "to see\nwhat changed"
		}, "🔐 May Claude run this command?\ngit status --short\nIt says: to see⏎what changed\nIf you don't answer by 15:04, it's denied." +
			"\n[✅ Allow once a:q1:n1:1][⛔ Deny a:q1:n1:d]\n[Deny with reason… a:q1:n1:r]"},
		{"a change", func(a *orchestrator.Approval) {
			a.Request = &cli.ApprovalAsked{Tool: "Edit", Changes: []cli.FileChanged{{Path: "/w/a.go", Diff: "--- a\n+++ b\n-x\n+y\n"}}}
		}, "🔐 May Claude change this file?\n✎ /w/a.go +1 −1\n--- a\n+++ b\n-x\n+y\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"an edit", func(a *orchestrator.Approval) {
			a.Dir = "/w"
			a.Request = &cli.ApprovalAsked{Tool: "patch", Title: "a.go", Changes: []cli.FileChanged{{Path: "/w/a.go", Kind: cli.FileAdded, Diff: "@@ -0,0 +1 @@\n+y\n"}},
				Fields: []cli.Field{{Name: "threadId", Value: "7", Weight: cli.LabelField}}}
		}, "🔐 May Claude create this file?\n➕ a.go +1 −0\n+y\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"an edit of two files, in words of its own", func(a *orchestrator.Approval) {
			a.Request = &cli.ApprovalAsked{Tool: "edit", Title: "two files", Changes: []cli.FileChanged{{Path: "a"}, {Path: "b"}}}
		}, "🔐 May Claude change these 2 files?\ntwo files\n✎ a\n✎ b\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"a change by what does more", func(a *orchestrator.Approval) {
			a.Request = &cli.ApprovalAsked{Tool: "Deploy", Changes: []cli.FileChanged{{Path: "a.go"}}, Fields: []cli.Field{{Name: "to", Value: "prod"}, {Name: "all", Value: "true", Weight: cli.EditField}}}
		}, "🔐 May Claude use Deploy?\n✎ a.go\nto: prod\nall: true\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"a change in the project, in words", func(a *orchestrator.Approval) {
			a.Dir = "/w"
			a.Request = &cli.ApprovalAsked{Tool: "Edit", Changes: []cli.FileChanged{{Path: "/w/a.go", Diff: "--- a/a.go\n+++ b/a.go\n@@ -10 +10 @@ f\n-x\n+y\n"}}}
		}, "🔐 May Claude change this file?\n✎ a.go +1 −1\n… line 10, f\n-x\n+y\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"a plan", func(a *orchestrator.Approval) {
			a.Request, a.SessionRule, a.Rule = &cli.ApprovalAsked{Tool: cli.PlanTool, Detail: "1. **Look**\n2. Do"}, "", ""
		}, "🗺 May Claude begin with this plan?\n1. **Look**\n2. Do\nIf you don't answer by 15:04, it's denied." +
			"\n[▶️ Begin a:q1:n1:1][📝 Keep planning a:q1:n1:d]\n[Keep planning, with a reason… a:q1:n1:r]"},
		{"a plan that may edit", func(a *orchestrator.Approval) {
			a.Request, a.SessionRule, a.Rule, a.Edits = &cli.ApprovalAsked{Tool: cli.PlanTool, Detail: "Do"}, "", "", true
		}, "🗺 May Claude begin with this plan?\nDo\nIf you don't answer by 15:04, it's denied." +
			"\n[▶️ Begin a:q1:n1:1][📝 Keep planning a:q1:n1:d]\n[▶️ Begin and accept edits a:q1:n1:e]\n[Keep planning, with a reason… a:q1:n1:r]"},
		{"accepted edits", func(a *orchestrator.Approval) {
			a.State, a.By, a.Ruled = orchestrator.ApprovalAllowed, 7, orchestrator.RuledByMode
		}, "✅ Allowed. From now on the agent edits files in its folder without asking; /permissions changes that. git status --short"},
		{"the end of a long command is shown", func(a *orchestrator.Approval) { a.Request.Detail = long + "; rm -rf ~" },
			"🔐 May Claude run this command?\n" + strings.Repeat("x", 766) + "\n… 1,861 characters are not shown here …\n" +
				strings.Repeat("x", 373) + "; rm -rf ~\nIf you don't answer by 15:04, it's denied." +
				"\nThis is cut off here: open 📄 Full text before you allow it." + openButtons + "[📄 Full text a:q1:n1:f]"},
		{"what is not seen is written out", func(a *orchestrator.Approval) { a.Request.Title = "ls \u202e\u200bfr- mr" },
			"🔐 May Claude run this command?\nls \\u202e\\u200bfr- mr\nIf you don't answer by 15:04, it's denied." + openButtons},
		{"allowed", func(a *orchestrator.Approval) { a.State = orchestrator.ApprovalAllowed },
			"✅ Allowed. git status --short"},
		{"allowed by a rule", func(a *orchestrator.Approval) { a.State, a.Ruled = orchestrator.ApprovalAllowed, a.Rule },
			"✅ Allowed by the rule git status * · git status --short"},
		{"allowed with a rule", func(a *orchestrator.Approval) { a.State, a.Ruled, a.By = orchestrator.ApprovalAllowed, a.Rule, 7 },
			"✅ Allowed, and with it git status * · git status --short"},
		{"denied", func(a *orchestrator.Approval) { a.State, a.Reason = orchestrator.ApprovalDenied, "not now" },
			"⛔ Denied: not now · git status --short"},
		{"withdrawn", func(a *orchestrator.Approval) { a.State = orchestrator.ApprovalWithdrawn },
			"↩ No longer needed. git status --short"},
		{"an allowed change of several files", func(a *orchestrator.Approval) {
			a.State, a.Dir = orchestrator.ApprovalAllowed, "/w"
			a.Request = &cli.ApprovalAsked{Tool: "Edit", Changes: []cli.FileChanged{{Path: "/w/a.go", Diff: "-x\n+y\n"}, {Path: "/w/b.go"}, {Path: "/w/c.go"}}}
		}, "✅ Allowed. ✎ a.go … and 2 more files"},
		{"an allowed call with nothing but fields", func(a *orchestrator.Approval) {
			a.State, a.Request = orchestrator.ApprovalAllowed, &cli.ApprovalAsked{Tool: "mcp__x__y",
				Fields: []cli.Field{{Name: "about", Value: "z", Weight: cli.LabelField}, {Name: "host", Value: "prod"}, {Name: "n", Value: "1"}}}
		}, "✅ Allowed. mcp__x__y host: prod, n: 1"},
		{"an allowed call of ductor's own tool", func(a *orchestrator.Approval) {
			a.State, a.Request = orchestrator.ApprovalAllowed, &cli.ApprovalAsked{Tool: "ductor.schedule", Title: "daily: greet"}
		}, "✅ Allowed. ⏰ schedule daily: greet"},
		{"allowed settings of a project", func(a *orchestrator.Approval) {
			a.State, a.Request = orchestrator.ApprovalAllowed, &cli.ApprovalAsked{Tool: cli.ProjectTool, Title: "/w"}
		}, "✅ Allowed. Settings of /w"},
		{"a denied command of many lines", func(a *orchestrator.Approval) {
			a.State, a.Request.Detail = orchestrator.ApprovalDenied, "cat <<E\n"+long+"\nE"
		}, "⛔ Denied. cat <<E " + strings.Repeat("x", 71) + "…"},
		{"a plan that began", func(a *orchestrator.Approval) {
			a.State, a.Request = orchestrator.ApprovalAllowed, &cli.ApprovalAsked{Tool: cli.PlanTool, Detail: "1. **Look**\n2. Do"}
		}, "🗺 May Claude begin with this plan?\n1. **Look**\n2. Do\n✅ Allowed."},
		{"expired", func(a *orchestrator.Approval) { a.State = orchestrator.ApprovalExpired },
			"⌛ Timed out at 15:04: denied. git status --short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := anApproval()
			c.change(&a)
			if got := drawMessage((view{Approval: a}).draw(draft{}, "")); got != c.want {
				t.Errorf("the chat shows\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Users see a rule before they make it: the button of the choice is below the rule and nowhere else.
func TestTheRuleIsShownBeforeTheChoice(t *testing.T) {
	a := anApproval()
	want := "🔐 May Claude run this command?\ngit status --short\n" +
		"In this chat, this also allows the following without asking, until you revoke it in /permissions:\n" +
		"git status *\n[✅ Allow with this rule a:q1:n1:P]\n[‹ Back a:q1:n1:b]"
	if got := drawMessage((view{Approval: a}).drawRule(opShowPattern)); got != want {
		t.Errorf("the chat shows\n%s\nwant\n%s", got, want)
	}
	a.State = orchestrator.ApprovalExpired
	if _, k := (view{Approval: a}).draw(draft{View: opShowPattern}, ""); k != nil {
		t.Error("an approval that is over has buttons")
	}
}

func TestTheFullTextShowsEverything(t *testing.T) {
	a := anApproval()
	a.Request.Detail = strings.Repeat("word ", 3000) + "end"
	var all strings.Builder
	for _, m := range (view{Approval: a}).fullText() {
		if err := bottest.CheckMessage(m); err != nil {
			t.Error(err)
		}
		all.WriteString(m.Text)
	}
	if n := strings.Count(all.String(), "word"); n != 3000 || !strings.HasSuffix(all.String(), "end") {
		t.Errorf("%d of 3000 words", n)
	}
	a.Request.Detail = strings.Repeat("word ", 30000)
	whole := (view{Approval: a}).fullText()
	if last := whole[len(whole)-1].Text; len(whole) != fullTextMax+1 || !strings.Contains(last, "longer than a chat can show") {
		t.Errorf("%d messages, the last %q", len(whole), last)
	}
}

// Whatever an agent asks, Telegram accepts the message, and its buttons name the approval. The message of an approval
// that is over has one line, except for a plan.
func TestLawAnApprovalIsAMessage(t *testing.T) {
	text := rapid.StringMatching(`(?s).{0,40}`)
	rapid.Check(t, func(rt *rapid.T) {
		long := func(label string) string {
			return strings.Repeat(text.Draw(rt, label), rapid.SampledFrom([]int{0, 1, 7, 300}).Draw(rt, label+" times"))
		}
		a := anApproval()
		a.Request = &cli.ApprovalAsked{
			Tool:  rapid.SampledFrom([]string{"Bash", cli.PlanTool, strings.Repeat("Tool", 20)}).Draw(rt, "tool"),
			Title: long("title"), Detail: long("detail"), Reason: long("reason"),
		}
		for range rapid.IntRange(0, 8).Draw(rt, "changes") {
			a.Request.Changes = append(a.Request.Changes, cli.FileChanged{Path: long("path"), Diff: long("diff")})
		}
		for range rapid.IntRange(0, 12).Draw(rt, "fields") {
			weight := rapid.SampledFrom([]cli.Weight{cli.PlainField, cli.WiderField, cli.LabelField}).Draw(rt, "weight")
			a.Request.Fields = append(a.Request.Fields, cli.Field{Name: long("name"), Value: long("value"), Weight: weight})
		}
		a.Rule = "Bash(" + long("rule") + ")"
		a.State = rapid.SampledFrom([]orchestrator.ApprovalState{orchestrator.ApprovalOpen, orchestrator.ApprovalAllowed, orchestrator.ApprovalDenied}).Draw(rt, "state")
		a.Reason, a.Ruled = long("why"), long("ruled")
		for _, op := range []operation{opBack, opShowPattern} {
			m, k := (view{Approval: a}).draw(draft{View: op}, "")
			if a.State != orchestrator.ApprovalOpen && a.Request.Tool != cli.PlanTool && strings.Contains(m.Text, "\n") {
				rt.Fatalf("an approval that is %s takes more than a line: %q", a.State, m.Text)
			}
			if err := bottest.CheckMessage(m); err != nil {
				rt.Fatalf("%q: %v", m.Text, err)
			}
			if (len(k) > 0) != (a.State == orchestrator.ApprovalOpen) {
				rt.Fatalf("an approval that is %s has %d rows of buttons", a.State, len(k))
			}
			for _, row := range k {
				for _, b := range row {
					if p, ok := parseButtonData(strings.TrimPrefix(b.Data, Action+":")); !ok || p.id != a.ID || p.nonce != a.Nonce {
						rt.Fatalf("the button says %q", b.Data)
					}
				}
			}
		}
	})
}

// Everything that an agent asks is in the message or in the full text; otherwise it cannot be allowed.
func TestLawNothingIsAllowedUnseen(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{8,10}`)
	rapid.Check(t, func(rt *rapid.T) {
		var words []string
		text := func(label string) string {
			var b strings.Builder
			for range rapid.IntRange(0, 4).Draw(rt, label+" parts") {
				w := word.Draw(rt, label)
				words = append(words, w)
				b.WriteString(w + strings.Repeat(rapid.SampledFrom([]string{"", " ", "\n", "\t", "x", "\u202e"}).Draw(rt, label+" blank"), rapid.SampledFrom([]int{1, 3, 900}).Draw(rt, label+" times")))
			}
			return b.String()
		}
		a := anApproval()
		a.Rule, a.SessionRule = "", ""
		a.Request = &cli.ApprovalAsked{Tool: "Bash", Effect: shell, Detail: text("detail"), Reason: text("reason")}
		for range rapid.IntRange(0, 7).Draw(rt, "changes") {
			a.Request.Changes = append(a.Request.Changes, cli.FileChanged{Path: text("path"), Diff: text("diff")})
		}
		for range rapid.IntRange(0, 12).Draw(rt, "fields") {
			weight := rapid.SampledFrom([]cli.Weight{cli.PlainField, cli.WiderField, cli.EditField}).Draw(rt, "weight")
			a.Request.Fields = append(a.Request.Fields, cli.Field{Name: text("name"), Value: text("value"), Weight: weight})
		}
		card, keys := (view{Approval: a}).drawApproval()
		gate := (view{Approval: a}).gate((view{Approval: a}).subject())
		buttons := fmt.Sprint(keys)
		if strings.Contains(buttons, "Allow") != (gate != gateShut) || gate == gateUnread && !strings.Contains(buttons, "Full text") {
			rt.Fatalf("a gate that is %s has the buttons %s", gate, buttons)
		}
		shown := card.Text
		if gate == gateUnread {
			for _, m := range (view{Approval: a}).fullText() {
				shown += m.Text
			}
		}
		for i, w := range words {
			if gate != gateShut && !strings.Contains(shown, w) {
				rt.Fatalf("word %d, %q, of an approval that is %s is nowhere: %q", i, w, gate, shown)
			}
		}
	})
}

func FuzzButtonData(f *testing.F) {
	for _, s := range []string{"q1:n1:1", "q:n:o0.12", "q:n:n3", "q:n:S", "::", "q:n:", "q:n:o1.", "q:n:o01.2", "q:n:11"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, what string) {
		p, ok := parseButtonData(what)
		if !ok {
			return
		}
		// The parser accepts exactly the data that our own buttons have.
		if data, fits := p.encode(); fits && data != Action+":"+what {
			t.Errorf("%q is read as %+v, which is %q", what, p, data)
		}
		if c, is := p.op.choice(); is && (c == orchestrator.AllowSession) != (p.op == opSession) {
			t.Errorf("%q is the choice %s", what, c)
		}
	})
}

// The name of a tool and the first word of its command share a message, even if a long word follows.
func TestTheFullTextOfALongWordFillsItsMessages(t *testing.T) {
	v := view{Approval: anApproval()}
	v.Request.Detail = "echo " + strings.Repeat("x", 9000)
	texts := v.fullText()
	if len(texts) != 3 || render.Len(texts[0].Text) < render.MessageLimit/2 {
		t.Errorf("it has %d messages, the first of %d units", len(texts), render.Len(texts[0].Text))
	}
}

// The question names what ductor's own tools do, because their names alone are unclear.
func TestTheQuestionAboutAToolOfDuctor(t *testing.T) {
	for tool, want := range map[string]string{
		"Deploy":                  "🔐 May Claude use Deploy?",
		"ductor.work_with":        "👷 May Claude give this task to another agent?",
		"mcp__ductor__schedule":   "⏰ May Claude create this schedule?",
		"mcp_ductor_send_message": "🔐 May Claude use ductor's tool 💬 message?",
		"mcp__another__work_with": "🔐 May Claude use mcp__another__work_with?",
		"mcp_ductor_x_run":        "🔐 May Claude use mcp_ductor_x_run?",
	} {
		a := anApproval()
		a.Request = &cli.ApprovalAsked{Tool: tool, Title: "look"}
		if first := (view{Approval: a}).subject().lines[0].Text; first != want {
			t.Errorf("%s: %q, want %q", tool, first, want)
		}
	}
}

func TestChangedSettingsOfAProject(t *testing.T) {
	a := anApproval()
	a.SessionRule = ""
	a.Request = &cli.ApprovalAsked{Tool: cli.ProjectTool, Title: "/w", Fields: []cli.Field{
		{Name: ".env: other variables", Value: "A, B"},
		{Name: cli.ChangedSettings, Value: ".env: B", Weight: cli.LabelField},
	}}
	const want = "They can run programs and give it more permissions.\n" +
		"Changed since they were last allowed: .env: B\n/w\n" +
		".env: other variables: A, B\nIf you don't answer"
	if got := drawMessage((view{Approval: a}).draw(draft{}, "")); !strings.Contains(got, want) {
		t.Errorf("the chat shows\n%s", got)
	}
}
