package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/bot/card"
	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// lineAgent is an agent of the Agent Client Protocol that prints the lines of the file "turn" beside it as the answer to
// a prompt. It waits at two kinds of lines: "answer" for the next line from ductor, which it stores in the file
// "answers", and "until NAME" for a file.
const lineAgent = `#!/bin/sh
cd "$(dirname "$0")"
ask='{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}'
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while IFS= read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\("[^"]*"\).*/\1/p')
	case $line in
	*'"method":"initialize"'*)
		printf '%s\n' "$line" >hello
		reply "$id" '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
	*'"method":"session/load"'*) reply "$id" "{\"modes\":$ask}" ;;
	*'"method":"session/new"'*)
		reply "$id" "{\"sessionId\":\"s1\",\"modes\":$ask}" ;;
	*'"method":"session/prompt"'*)
		while IFS= read -r say <&3; do
			case $say in
			answer) IFS= read -r line; printf '%s\n' "$line" >>answers ;;
			until*) while ! test -e "${say#until }"; do sleep 0.02; done ;;
			*) printf '%s\n' "$say" ;;
			esac
		done 3<turn
		reply "$id" '{"stopReason":"end_turn"}' ;;
	esac
done
`

// writeLineAgent writes an agent that prints lines into a folder. DIR in a line is the project's folder.
func writeLineAgent(t *testing.T, folder, project string, lines ...string) (program string) {
	t.Helper()
	for name, content := range map[string]string{"agent": lineAgent,
		"turn": strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "DIR", project)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "agent")
}

// lineTown returns a town whose agent prints lines, and the agent's folder.
func lineTown(t *testing.T, lines ...string) (town *town, folder string) {
	t.Helper()
	folder = t.TempDir()
	town = newTown(t, func(c *config.Config) {
		c.Agents.Default, c.Permissions.Mode = "lines", "ask"
		program := writeLineAgent(t, folder, c.Projects.DefaultDir, lines...)
		c.Agents.ACP = map[string]acp.Settings{"lines": {Enabled: true, Path: program}}
	})
	return town, folder
}

// change is an update of a tool call.
func change(kind, fields string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1",`+
		`"update":{"sessionUpdate":%q,%s}}}`, kind, fields)
}

func request(id int, method, fields string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"sessionId":"s1",%s}}`, id, method, fields)
}

// The line, the approval, Steps and the audit show the last known state of a call, and the files and commands that
// ductor serves for the agent.
func TestTheChatFollowsTheCallsOfAnAgent(t *testing.T) {
	town, folder := lineTown(t,
		change("tool_call", `"toolCallId":"a","title":"bash","kind":"execute","status":"in_progress","rawInput":{}`),
		"until seen",
		change("tool_call_update", `"toolCallId":"a","rawInput":{"command":"make all"}`),
		request(1, "session/request_permission", `"options":[{"optionId":"yes",`+
			`"kind":"allow_once"},{"optionId":"no","kind":"reject_once"}],"toolCall":{"toolCallId":"a"}`),
		"until asked",
		change("tool_call_update", `"toolCallId":"a","rawInput":{"command":"make clean"}`),
		"answer",
		change("tool_call_update", `"toolCallId":"a","status":"completed","rawOutput":{"output":"cleaned","exit":2}`),
		request(2, "fs/write_text_file", `"path":"DIR/made.txt","content":"one\n"`), "answer",
		request(3, "fs/read_text_file", `"path":"DIR/made.txt"`), "answer",
		request(4, "terminal/create", `"command":"echo","args":["from","ductor"]`), "answer",
		request(5, "terminal/wait_for_exit", `"terminalId":"term-1"`), "answer",
		change("tool_call_update", `"toolCallId":"stray","status":"failed","title":"never announced","kind":"other"`),
		change("agent_message_chunk", `"content":{"type":"text","text":"that was all"}`),
	)
	town.say("go on")
	town.await("bash")
	touch := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	touch("seen")
	first := town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("✅ Allow once") &&
			strings.Contains(m.Text, "make all")
	})
	touch("asked")
	last := town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("✅ Allow once") &&
			strings.Contains(m.Text, "make clean")
	})
	if last.ID == first.ID {
		t.Error("a card changed below the user's finger")
	}
	town.pressOn(last, "✅ Allow once")
	card := town.awaitDone(1)
	for _, want := range []string{"✗ Run make clean · exit 2", "✓ Edit made.txt", "✓ Read made.txt",
		"✓ Run echo from ductor", "✗ Tool never announced", "that was all"} {
		if !strings.Contains(card.Text, want) {
			t.Errorf("the card lacks %q: %q", want, card.Text)
		}
	}
	if m := town.awaitMessage(func(m telegram.Message) bool {
		return m.ID == first.ID &&
			!m.HasButton("✅ Allow once")
	}); strings.Contains(m.Text, "Allowed") {
		t.Errorf("the first card says %q", m.Text)
	}
	town.pressOn(card, "🪜 Steps")
	list := town.await("6 steps")
	for _, want := range []string{"✗ Run make clean · exit 2", "✓ Edit made.txt", "made.txt", "✓ Read made.txt",
		"✓ Run echo from ductor"} {
		if !strings.Contains(list.Text, want) {
			t.Errorf("Steps lack %q: %q", want, list.Text)
		}
	}
	audit := town.answer("/audit", "make clean")
	for _, want := range []string{"Edit made.txt", "Read made.txt", "Run echo from ductor"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %q: %q", want, audit)
		}
	}
	if strings.Contains(audit, "bash") {
		t.Errorf("the audit has the first title: %q", audit)
	}
}

// An agent asks with a form and sends its user to a page. Both are questions in the chat.
func TestAnAgentAsksWithAForm(t *testing.T) {
	town, folder := lineTown(t,
		request(1, "elicitation/create", `"mode":"form","message":"Where to?",`+
			`"requestedSchema":{"required":["zone","count"],"properties":{"zone":{"type":"string",`+
			`"title":"Zone","oneOf":[{"const":"eu","title":"Europe"},{"const":"us","title":"America"}]},`+
			`"count":{"type":"integer","title":"Count"}}}`), "answer",
		request(2, "elicitation/create", `"mode":"url","elicitationId":"v",`+
			`"url":"https://example.com/connect?state=1","message":"Please connect."`), "answer",
		change("agent_message_chunk", `"content":{"type":"text","text":"thank you"}`),
	)
	town.say("go on")
	form := town.awaitButton("Europe")
	if !strings.Contains(form.Text, "Where to?") || !strings.Contains(form.Text, "Zone") {
		t.Errorf("the form is %q", form.Text)
	}
	for _, count := range []string{"a few", "3"} {
		town.pressOn(form, "Europe")
		town.await("(2 of 2)")
		town.chat.Person().Send(town.chat, count, telegram.ReplyTo(form.ID))
		if count != "3" {
			form = town.await("doesn't fit Count")
		}
	}
	visit := town.await("https://example.com/connect?state=1")
	if !strings.Contains(visit.Text, "example.com\n") || !visit.HasButton("✖ Decline") {
		t.Errorf("the visit is %q", visit.Text)
	}
	town.press("✅ I opened it")
	town.await("thank you")
	answers, err := os.ReadFile(filepath.Join(folder, "answers"))
	hello, _ := os.ReadFile(filepath.Join(folder, "hello"))
	if err != nil || !strings.Contains(string(answers), `{"action":"accept","content":{"count":3,`+
		`"zone":"eu"}}`) || !strings.Contains(string(answers), `"id":2,"result":{"action":"accept"`) ||
		!strings.Contains(string(hello), `"elicitation":{"form":{},"url":{}}`) {
		t.Errorf("the agent hears %s after %s, %v", answers, hello, err)
	}
}

// An agent reports what its session has cost in all. Also the first turn after a restart shows what it cost itself.
func TestTheCostOfTheFirstTurnAfterARestart(t *testing.T) {
	spend := func(usd string) []string {
		return []string{
			change("usage_update", `"used":10,"size":1000,"cost":{"currency":"USD","amount":`+usd+`}`),
			change("agent_message_chunk", `"content":{"type":"text","text":"spent in all: `+usd+`; well"}`),
		}
	}
	town, folder := lineTown(t, spend("0.40")...)
	town.stop()
	town.cfg.Stream.Footer = []card.FooterField{card.FooterCost}
	town.start()
	costs := func(part string) {
		t.Helper()
		said := town.say("go on")
		town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "; well") && strings.Contains(m.Text, part)
		})
		town.awaitIdle()
	}
	costs("$0.40")
	town.stop()
	writeLineAgent(t, folder, "", spend("0.65")...)
	town.start()
	costs("$0.25")
	writeLineAgent(t, folder, "", spend("0.75")...)
	costs("$0.10")
	town.awaitAfter(town.say("/usage"), "$0.75")
}
