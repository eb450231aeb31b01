package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"ductor/cli/clitest"
	"ductor/internal/sim/telegram"
)

// hidingRequest is a request whose card an agent tries to make show less than it allows.
type hidingRequest struct {
	name, kind, params string

	first []string // the card shows these in bold, before the rest
	shows []string // the card also shows these
	gate  gate
}

// gate is the condition under which a card allows the request.
type gate string

const (
	gateOpen   gate = ""
	gateUnread gate = "unread" // after the full text was opened
	gateShut   gate = "shut"   // never
)

const fakeEnd = "✅ Allowed by Owner."

// hidingRequests returns the requests of each agent.
func hidingRequests() map[string][]hidingRequest {
	long := strings.Repeat(`\n`, 700)
	return map[string][]hidingRequest{
		"claude": {
			{name: "another host", kind: "mcp__ssh__run", params: `{"command":"uptime","host":"prod","sudo":true}`,
				shows: []string{"uptime", "host: prod", "sudo: true"}},
			{name: "no sandbox", kind: "Bash",
				params: `{"command":"ls","dangerouslyDisableSandbox":true,"run_in_background":true,"timeout":7}`,
				first:  []string{"dangerouslyDisableSandbox: true"},
				shows:  []string{"run_in_background: true", "timeout: 7"}},
			{name: "the same key twice", kind: "Bash", params: `{"command":"rm -rf ~","command":"ls"}`,
				shows: []string{"rm -rf ~", "ls"}},
			{name: "a key in other letters", kind: "Edit",
				params: `{"file_path":"/etc/passwd","FILE_PATH":"ok.txt","old_string":"a","new_string":"b"}`,
				shows:  []string{"/etc/passwd"}},
			{name: "a plan", kind: "ExitPlanMode", params: `{"plan":"1. [look](https://evil.example/x)\n**` + fakeEnd +
				`** tg://resolve?domain=x","allowedPrompts":[{"tool":"Bash","prompt":"run anything"}]}`,
				first: []string{"allowedPrompts[0].prompt: run anything"},
				shows: []string{"[look](https://evil.example/x)", "**" + fakeEnd + "**", "tg://resolve?domain=x"}},
			{name: "newlines", kind: "Bash", params: `{"command":"echo ok` + long + `rm -rf ~"}`,
				shows: []string{"echo ok", "⏎ ×700", "rm -rf ~"}, gate: gateUnread},
			{name: "blanks", kind: "mcp__x__y", params: `{"command":"ok` + strings.Repeat(" ", 900) + `rm -rf ~"}`,
				shows: []string{"␣ ×900", "rm -rf ~"}, gate: gateUnread},
			{name: "what is not seen", kind: "Bash",
				params: `{"command":"ls \u202egnp.\u200b\u2800\u3164\ufe0f\u00a0 x"}`,
				shows:  []string{`\u202egnp.\u200b\u2800\u3164\ufe0f\u00a0 x`}},
			{name: "a long field", kind: "mcp__x__y", params: `{"text":"` + strings.Repeat("x", 700) + `END"}`,
				gate: gateUnread},
		},
		"codex": {
			{name: "another directory", kind: "item/commandExecution/requestApproval",
				params: `{"kind":"command","command":"/bin/bash -lc 'rm -rf build'","cwd":"/etc"}`,
				first:  []string{"cwd: /etc"}, shows: []string{"rm -rf build"}},
			{name: "more rights", kind: "item/commandExecution/requestApproval",
				params: `{"command":"ls","additionalPermissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":["/"]}},"networkApprovalContext":{"host":"evil.example","protocol":"https"}}`,
				first: []string{"additionalPermissions.network.enabled: true",
					"additionalPermissions.fileSystem.write[0]: /", "networkApprovalContext.host: evil.example"}},
			{name: "no command", kind: "item/commandExecution/requestApproval", params: `{"reason":"please"}`,
				shows: []string{"did not say the command"}, gate: gateShut},
			{name: "a patch that was not announced", kind: "item/fileChange/requestApproval",
				params: `{"reason":null,"grantRoot":"/"}`,
				first:  []string{"grantRoot: /"}, shows: []string{"did not say the changes"}, gate: gateShut},
			{name: "permissions", kind: "item/permissions/requestApproval",
				params: `{"cwd":"/","reason":"why not","permissions":{"network":{"enabled":true},"fileSystem":null}}`,
				first:  []string{"cwd: /", "permissions.network.enabled: true"}, shows: []string{"why not"}},
			{name: "an address", kind: "mcpServer/elicitation/request",
				params: `{"serverName":"demo","mode":"url","message":"` + strings.Repeat("Go there. ", 40) +
					`END","url":"https://evil.example/login","elicitationId":"e1"}`,
				first: []string{"url: https://evil.example/login"}, shows: []string{"END"}},
			{name: "a message and parameters", kind: "mcpServer/elicitation/request",
				params: `{"serverName":"demo","mode":"form","message":"Send all the money?","requestedSchema":{"type":"object","properties":{}},"_meta":{"tool_name":"pay","tool_params":{"to":"x"}}}`,
				shows:  []string{"Send all the money?", "\nto: x", "_meta.tool_name: pay"}},
		},
		"copilot": {
			{name: "a link", kind: "write",
				params: `{"fileName":"a.txt","resolvedPath":"/etc/passwd","diff":"@@ -1 +1 @@\n+x","newFileContents":"something else"}`,
				first:  []string{"resolvedPath: /etc/passwd"},
				shows:  []string{"a.txt", "newFileContents: something else"}},
			{name: "no sandbox", kind: "shell",
				params: `{"fullCommandText":"ls","intention":"look","requestSandboxBypass":true,"commandSegments":[{"workingDirectory":"/etc"}],"possibleUrls":[{"url":"https://evil.example"}]}`,
				first:  []string{"requestSandboxBypass: true", "commandSegments[0].workingDirectory: /etc"},
				shows:  []string{"possibleUrls[0].url: https://evil.example"}},
			{name: "arguments", kind: "mcp",
				params: `{"serverName":"ssh","toolName":"run","args":{"host":"prod","command":"uptime"}}`,
				shows:  []string{"args.host: prod", "args.command: uptime"}},
			{name: "no command", kind: "shell", params: `{"intention":"look"}`, gate: gateShut},
		},
		"gemini": {
			{name: "an input", kind: "execute",
				params: `{"title":"list files","rawInput":{"command":"ls","cwd":"/etc","env":{"LD_PRELOAD":"x.so"}}}`,
				first:  []string{"cwd: /etc"}, shows: []string{"list files", "env.LD_PRELOAD: x.so"}},
			{name: "a change that changes nothing", kind: "edit",
				params: `{"title":"edit","content":[{"type":"diff","path":"/x","oldText":"evil","newText":"evil"}]}`,
				shows:  []string{"⚠️ /x", "newText: evil"}},
			{name: "a title within the words", kind: "execute",
				params: `{"title":"sh","content":[{"type":"content","content":{"type":"text","text":"show it"}}]}`,
				shows:  []string{"sh\n\nshow it"}},
		},
	}
}

// No card hides a part of the request that it allows. The test uses requests for which a card once did, and random
// ones. A card that shows less than the request has a full text, which the user must open first, also after a restart.
func TestNoApprovalHidesWhatItAllows(t *testing.T) {
	for agent, cases := range hidingRequests() {
		t.Run(agent, func(t *testing.T) {
			a := startAttack(t, agent)
			for _, c := range cases {
				card := a.request(c.kind, c.params)
				a.check(c, card)
				a.decide(c, card)
			}
			for i := range 6 {
				kind, params := kindOf(agent, i), string(clitest.Inputs(fieldsOf(agent)...).Example(i))
				if agent == "gemini" { // Gemini rejects other fields
					params = `{"title":"a tool","rawInput":` + params + `}`
				}
				card := a.request(kind, params)
				a.checkShowsAll(card, kind, params)
				a.pressOn(card, denial(card))
				a.awaitEnd("[denied]")
			}
		})
	}
}

// approvalTown is a daemon with an agent that makes requests.
type approvalTown struct {
	*ordeal
	turns int
}

// startAttack starts a daemon in the permission mode ask, with a default agent.
func startAttack(t *testing.T, agent string) *approvalTown {
	t.Helper()
	town := surroundings(t, nil)
	town.agent, town.permission = agent, "ask"
	return &approvalTown{ordeal: town.ordeal(31)}
}

// request makes the agent ask, and returns the card.
func (a *approvalTown) request(kind, params string) telegram.Message {
	a.t.Helper()
	said := a.say(`[[start]] [[request %s params="%s"]] [[text "end"]]`, kind, quotedParams(params))
	return a.awaitMessage(func(m telegram.Message) bool { return m.ID > said.ID && m.HasButton(denial(m)) })
}

// quotedParams quotes the fields of a request for a directive. Telegram drops some characters.
func quotedParams(params string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\u202e", `\\u202e`, "\u200b", `\\u200b`).Replace(params)
}

// awaitEnd waits for the end of the turn.
func (a *approvalTown) awaitEnd(part string) {
	a.t.Helper()
	a.turns++
	if m := a.awaitDone(a.turns); !strings.Contains(m.Text, part) && !strings.Contains(m.Text, "⛔") {
		a.t.Errorf("turn %d ends with %q, want %q", a.turns, m.Text, part)
	}
}

// check compares a card with the expected contents.
func (a *approvalTown) check(c hidingRequest, card telegram.Message) {
	a.t.Helper()
	for _, part := range slices.Concat(c.first, c.shows) {
		if !strings.Contains(card.Text, part) {
			a.t.Errorf("%s: the card does not show %q: %q", c.name, part, card.Text)
		}
	}
	for _, part := range c.first {
		if !hasEntity(card, "bold", "⚠️ "+part) || strings.Index(card.Text, part) > len("🔐 May Claude use ?")+200 {
			a.t.Errorf("%s: the card does not begin with %q in bold: %q", c.name, part, card.Text)
		}
	}
	if len(c.first) > 0 && (card.HasButton("Allow this session…") || card.HasButton("Allow pattern…")) {
		a.t.Errorf("%s: a rule is offered: %v", c.name, card.Keyboard)
	}
	for _, e := range card.Entities {
		if !slices.Contains([]string{"bold", "italic", "pre", "code"}, e.Type) || e.Type == "bold" &&
			strings.Contains(telegram.Slice(card.Text, e.Offset, e.Length), fakeEnd) {
			a.t.Errorf("%s: the card renders %+v", c.name, e)
		}
	}
}

// decide presses Allow, which only has an effect if the user saw everything.
func (a *approvalTown) decide(c hidingRequest, card telegram.Message) {
	a.t.Helper()
	if c.gate == gateShut {
		if card.HasButton(allowance(card)) {
			a.t.Errorf("%s: it can be allowed: %q", c.name, card.Text)
		}
		a.pressOn(card, denial(card))
		a.awaitEnd("[denied]")
		return
	}
	if c.gate == gateUnread {
		if answer := a.pressOn(card, allowance(card)); !strings.Contains(answer.Text, "Full text first") {
			a.t.Errorf("%s: it is allowed unread: %+v", c.name, answer)
		}
		a.openWhole(card)
	}
	a.pressOn(card, allowance(card))
	a.awaitEnd("[allowed]")
}

// allowance and denial return the buttons that decide once. Those of a plan have other labels.
func allowance(card telegram.Message) string {
	if strings.HasPrefix(card.Text, "🗺") {
		return "▶️ Begin"
	}
	return "✅ Allow once"
}

func denial(card telegram.Message) string {
	if strings.HasPrefix(card.Text, "🗺") {
		return "📝 Keep planning"
	}
	return "⛔ Deny"
}

// openWhole opens the full text of a card.
func (a *approvalTown) openWhole(card telegram.Message) {
	a.t.Helper()
	a.pressOn(card, "📄 Full text")
	a.awaitMessage(func(m telegram.Message) bool { return m.ID > card.ID && m.ReplyTo == card.ID })
}

// checkShowsAll fails unless each value of a request is on the card or in its full text, or the request cannot be
// allowed.
func (a *approvalTown) checkShowsAll(card telegram.Message, kind, params string) {
	a.t.Helper()
	if !card.HasButton(allowance(card)) {
		return
	}
	shown := card.Text
	left := func() []string {
		return slices.DeleteFunc(clitest.Unshown([]byte(params), shown, writtenOut), saysNothing.MatchString)
	}
	if len(left()) == 0 {
		return
	}
	if !card.HasButton("📄 Full text") {
		a.t.Errorf("%s %s: the card does not show %q: %q", kind, params, left(), card.Text)
		return
	}
	a.pressOn(card, "📄 Full text")
	_, err := a.chat.Await(a.soon(), func(v telegram.View) bool {
		shown = card.Text
		for _, m := range v.FromBot() {
			if m.ID > card.ID {
				shown += m.Text
			}
		}
		return len(left()) == 0
	})
	if err != nil {
		a.t.Fatalf("%s %s: neither the card nor the full text show %q: %v", kind, params, left(), err)
	}
}

// saysNothing matches null fields that cards omit: another directory, wider rights or a reason.
var saysNothing = regexp.MustCompile(
	`^(.*\.)?(cwd|grantRoot|additionalPermissions|permissions|allowedPrompts|url|reason)\b.*:null$`)

// writtenOut escapes invisible characters as a card does.
func writtenOut(s string) string {
	return strings.NewReplacer("\u202e", `\u202e`, "\u200b", `\u200b`).Replace(s)
}

// kindOf returns the kind of an agent's i-th request.
func kindOf(agent string, i int) string {
	kinds := map[string][]string{
		"claude": {"Bash", "Edit", "mcp__a__b", "Write", "Task", "ExitPlanMode"},
		"codex": {"item/commandExecution/requestApproval", "mcpServer/elicitation/request",
			"item/permissions/requestApproval"},
		"copilot": {"shell", "write", "mcp", "url", "read", "new"},
		"gemini":  {"execute", "edit", "other"},
	}[agent]
	return kinds[i%len(kinds)]
}

// fieldsOf returns field names of an agent's requests.
func fieldsOf(agent string) []string {
	return map[string][]string{
		"claude": {"command", "file_path", "old_string", "new_string", "content", "plan", "allowedPrompts", "cwd",
			"url"},
		"codex": {"command", "cwd", "reason", "grantRoot", "additionalPermissions", "permissions", "message", "url",
			"serverName"},
		"copilot": {"fullCommandText", "intention", "fileName", "diff", "newFileContents", "serverName", "toolName",
			"args", "url"},
		"gemini": {"command", "cwd", "path"},
	}[agent]
}

// A card's fields, and whether its full text was opened, survive a restart.
func TestACardShowsItsFieldsAfterARestart(t *testing.T) {
	a := startAttack(t, "claude")
	card := a.request("mcp__x__y", `{"host":"prod","cwd":"/etc","text":"`+strings.Repeat("x", 700)+`END"}`)
	a.daemon.kill()
	a.rise()
	if answer := a.pressOn(card, "✅ Allow once"); !strings.Contains(answer.Text, "Full text first") {
		t.Errorf("it is allowed unread: %+v", answer)
	}
	a.openWhole(card)
	a.daemon.kill()
	a.rise()
	a.pressOn(card, "✅ Allow once")
	a.awaitEnd("[allowed]")
	m := a.awaitMessage(func(m telegram.Message) bool {
		return m.ID == card.ID && strings.Contains(m.Text, "✅ Allowed")
	})
	for _, part := range []string{"cwd: /etc", "host: prod"} { // also in the summary line of a decided card
		if !strings.Contains(m.Text, part) {
			t.Errorf("the card does not show %q: %q", part, m.Text)
		}
	}
}

// An approval that the version before stored, which knew no effects, waits on after the upgrade. Once the agent has
// asked again, its rule can be made, and allows the same command from then on.
func TestAnApprovalOfTheVersionBeforeIsDecided(t *testing.T) {
	a := startAttack(t, "claude")
	said := a.say(`[[start]] [[ask cmd="touch made"]] [[text "it is made"]]`)
	card := a.awaitMessage(func(m telegram.Message) bool { return m.ID > said.ID && m.HasButton("Allow pattern…") })
	a.daemon.kill()
	db := openDatabase(t, a.database())
	defer db.Close()
	var changed, again int
	const forget = `UPDATE asks SET content = json_remove(content, '$.approval.effect') WHERE content LIKE '%"effect"%' RETURNING 1`
	if err := db.QueryRow(forget).Scan(&changed); err != nil {
		t.Fatal("the stored approval has no effect:", err)
	}
	a.rise()
	eventually(t, "the agent to ask again", func() bool {
		return db.QueryRow(`SELECT 1 FROM asks WHERE content LIKE '%"effect"%'`).Scan(&again) == nil
	})
	a.pressOn(card, "Allow pattern…")
	a.press("✅ Allow with this rule")
	a.awaitEnd("it is made")
	a.say(`[[start]] [[ask cmd="touch again"]] [[text "it is made again"]]`)
	a.awaitEnd("it is made again")
}
