package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// Twenty users write, and three of them have problems: an agent that hangs, a slow Telegram for one chat, and an
// agent that does not start. The others get answers and can use commands while the three still wait.
func TestTwentyConversationsDoNotWaitForEachOther(t *testing.T) {
	const people = 20
	gate := filepath.Join(t.TempDir(), "gate")
	town := newTown(t, func(c *config.Config) {
		for i := range int64(people) {
			c.Telegram.AllowedUsers = append(c.Telegram.AllowedUsers, 100+i)
		}
		c.Agents.MaxLive = 8
		c.Agents.Codex.Mode = "one-shot" // a new process for each turn
		c.Agents.Codex.Path = slowStart(t, c.Agents.Codex.Path, gate)
	})
	chats := make([]*telegram.Chat, people)
	for i := range chats {
		chats[i] = town.srv.Private(telegram.UserID(100+i), fmt.Sprint("Person ", i))
	}
	say := func(i int, text string) { chats[i].Person().Send(chats[i], text) }
	shows := func(i int, part string) {
		t.Helper()
		if _, err := chats[i].AwaitText(town.soon(), part); err != nil {
			town.fatal(fmt.Errorf("person %d: %w", i, err))
		}
	}

	hanging, slowAPI, slowSpawn := 0, 1, 2
	say(hanging, "[[hang]]")
	slow := town.srv.Inject(telegram.Fault{
		When:  func(c telegram.Call) bool { return c.Chat == chats[slowAPI].ID() && c.Method == "sendMessage" },
		Times: telegram.Always, Kind: telegram.Hang,
	})
	say(slowAPI, `[[text "slow"]]`)
	say(slowSpawn, "/model codex")
	shows(slowSpawn, "Codex")
	say(slowSpawn, `[[text "spawned"]]`)

	for i := 3; i < people; i++ {
		say(i, fmt.Sprintf(`[[text "answer for %d." delay=1ms chunk=4]]`, i))
	}
	for i := 3; i < people; i++ {
		shows(i, fmt.Sprintf("answer for %d.", i))
	}
	for i := 3; i < 6; i++ {
		say(i, "/new")
		shows(i, "ew session")
		say(i, "/model claude/sonnet")
		shows(i, "sonnet")
		say(i, `[[text "begun"]] [[hang]]`)
		shows(i, "begun")
		say(i, "/abort")
		shows(i, "Aborted")
	}
	for _, i := range []int{slowAPI, slowSpawn} {
		if n := len(ended(chats[i].View())); n != 0 {
			t.Errorf("person %d was not in trouble after all: %s", i, chats[i].Transcript())
		}
	}

	slow.Remove()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shows(slowSpawn, "spawned")
	say(hanging, "/abort")
	shows(hanging, "topped")
	for i, c := range chats {
		for _, m := range c.View().FromBot() {
			for other := 3; other < people; other++ {
				if other != i && strings.Contains(m.Text, fmt.Sprintf("answer for %d.", other)) {
					t.Errorf("person %d sees %q", i, m.Text)
				}
			}
		}
	}
}

// slowStart returns an agent that waits for the file gate before it starts.
func slowStart(t testing.TB, program, gate string) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in exec) while [ ! -e %s ]; do sleep 0.02; done;; esac\nexec %s \"$@\"\n", gate, program)
	path := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// broken is a misbehaviour of an agent, and the chat's reaction.
type broken struct{ name, prompt, says string }

// If the agent misbehaves, the chat shows a clear sentence, and the next turn works.
func TestWhatABrokenAgentDoesIsTold(t *testing.T) {
	tellBroken(t, time.Minute, []broken{
		{"dies at once", "[[crash code=3]]", "exit code 3"},
		{"exits 0 without a result", "[[silent]]", "exit code 0"},
		{"writes binary garbage and dies", "[[garbage bytes=4000]] [[crash code=1]]", "exit code 1"},
		{"writes a line of 8 MB", `[[longline bytes=8000000]] [[text "survived"]]`, "survived"},
		{"is refused by its model", "[[error 400]]", "refused"},
		{"forks a grandchild that holds the pipe", "[[hold-pipe for=60s]] [[crash code=4]]", "exit code 4"},
	})
}

func TestAnAgentThatSaysNothingIsEnded(t *testing.T) {
	const stalled = "took too long"
	for stall := 2 * time.Second; ; stall *= 2 { // on a slow machine the next agent also takes too long
		if next := tellBroken(t, stall, []broken{
			{"nothing", "[[hang]]", stalled},
			{"nothing, and it is deaf", "[[ignore-term]] [[hang]]", stalled},
			{"a line without end", "[[endlessline]]", stalled},
		}); next == "" {
			return
		} else if stall > time.Minute || !strings.Contains(next, stalled) {
			t.Fatalf("with %s to answer, the next agent says %q", stall, next)
		}
	}
}

// tellBroken returns the end of the first turn after a broken agent that has no answer, or "" if all have one.
func tellBroken(t testing.TB, stall time.Duration, cases []broken) string {
	town := newTown(t, func(c *config.Config) {
		c.Agents.Stall, c.Agents.Grace, c.Agents.Codex.Enabled = stall, 500*time.Millisecond, false
		c.Agents.Fallback = nil
		c.Permissions.Mode = "bypass"
	})
	for i, c := range cases {
		asked := town.say("[[start]] %s", c.prompt)
		town.awaitAfter(asked, c.says)
		answer := fmt.Sprint("fine again ", i)
		next := town.say(`[[start]] [[text "%s"]]`, answer)
		m := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > next.ID && (strings.Contains(m.Text, answer) || strings.Contains(m.Text, "took too long"))
		})
		if !strings.Contains(m.Text, answer) {
			town.stop()
			return m.Text
		}
	}
	town.stop()
	checkNoProcessIn(t, town.cfg.Projects.DefaultDir)
	return ""
}

func TestUnsupportedAndUnreadableMessagesAreTold(t *testing.T) {
	town := newTown(t, nil)
	town.chat.Person().SendVoice(town.chat, []byte("hello"))
	if m := town.await("I can't understand speech yet"); !strings.Contains(m.Text, "ffmpeg") {
		t.Errorf("the hint names nothing that reads a voice message: %s", m.Text)
	}
	town.chat.Person().SendSticker(town.chat, "👍")
	town.await("ticker")
	town.srv.InjectRaw(func(id telegram.UpdateID) string {
		return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":"not a number"}}`, id)
	})
	town.say(`[[text "after the unreadable one"]]`)
	town.await("after the unreadable one")
	town.chat.Person().SendDocument(town.chat, telegram.File{Name: "big.iso", Size: 21 << 20})
	town.await("20 MB")
}
