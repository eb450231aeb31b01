package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// While chats use a real agent, another chat starts at once if there is room. Otherwise it says what it waits for.
func TestOneMoreRealAgentStartsWhereThereIsRoom(t *testing.T) {
	realagent.LongOnly(t)
	for name, c := range realagent.SomeOf(map[string]struct {
		busy int
		max  int // limit of working agents; 0 for the limit by memory
		says string
	}{
		"room beside four": {4, 0, "one more answers"},
		"no room":          {1, 1, "all agents are busy; this is next"},
	}) {
		busy := c.busy
		t.Run(name, func(t *testing.T) {
			town, _ := realTown(t, "claude", func(cfg *config.Config) {
				cfg.Agents.MaxLive = c.max
				for i := range int64(busy + 1) {
					cfg.Telegram.AllowedUsers = append(cfg.Telegram.AllowedUsers, 100+i)
				}
			})
			work := town.cfg.Projects.DefaultDir
			var chats []*telegram.Chat
			for i := range busy + 1 {
				chats = append(chats, town.srv.Private(telegram.UserID(100+i), fmt.Sprint("User ", i)))
			}
			say := func(i int, text string) { chats[i].Person().Send(chats[i], text) }
			shows := func(i int, text string) {
				t.Helper()
				if _, err := chats[i].AwaitText(town.soon(), text); err != nil {
					town.fatal(fmt.Errorf("user %d: %w", i, err))
				}
			}
			for i := range busy {
				say(i,
					fmt.Sprintf(
						`[[start]] [[tool cmd="touch at-work-%d; until [ -e go ]; do sleep 0.05; done"]] [[text "done %d"]]`, i, i))
				awaitFile(t, filepath.Join(work, fmt.Sprint("at-work-", i)))
			}
			say(busy, `[[start]] [[text "one more answers"]]`)
			shows(busy, c.says)
			if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range busy {
				shows(i, fmt.Sprint("done ", i))
			}
			shows(busy, "one more answers")
		})
	}
}
