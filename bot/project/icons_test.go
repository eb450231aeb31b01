package project

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

var ours = orchestrator.ConversationID{Chat: -7, Topic: 3}

// chat is Telegram and the store in one.
type chat struct {
	began time.Time
	edits []string // the time and the icon
	fault tgapi.FaultKind
	kept  map[orchestrator.ConversationID]string
}

func (c *chat) Topics(context.Context) (map[orchestrator.ConversationID]string, error) {
	return maps.Clone(c.kept), nil
}

func (c *chat) SaveTopic(_ context.Context, in orchestrator.ConversationID, shows string) error {
	if c.kept[in] = shows; shows == "" {
		delete(c.kept, in)
	}
	return nil
}

func (*chat) TopicIcons(context.Context) (map[string]string, error) {
	return map[string]string{"💬": "idle", "⚡": "working", "❓": "waiting", "❗": "failed"}, nil
}

func (c *chat) SetTopicIcon(_ context.Context, in orchestrator.ConversationID, icon string) error {
	c.edits = append(c.edits, fmt.Sprintf("%s %d %s", time.Since(c.began).Truncate(time.Second), in.Topic, icon))
	if c.fault != "" {
		return tgapi.NewCallError("editForumTopic", tgapi.Fault{Kind: c.fault}, nil, tgapi.NewScrubber("token"))
	}
	return nil
}

func icons(t *testing.T, test func(c *chat, start func() *Icons)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &chat{began: time.Now(), kept: map[orchestrator.ConversationID]string{}}
		var out *outbox.Outbox
		end := func() {
			if out == nil {
				return
			}
			if err := out.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		}
		test(c, func() *Icons {
			end()
			out = outbox.New(outbox.Options{Trouble: tgapi.TroubleOf})
			i, err := NewIcons(t.Context(), IconOptions{Store: c, Client: c, All: c.TopicIcons, Outbox: out, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return i
		})
		end()
	})
}

func (c *chat) check(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(c.edits, want) {
		t.Errorf("the edits are\n%s\nwant\n%s", strings.Join(c.edits, "\n"), strings.Join(want, "\n"))
	}
}

func turn(in orchestrator.ConversationID) orchestrator.Turn {
	return orchestrator.Turn{ID: "t", Prompt: orchestrator.Prompt{Conversation: in}}
}

// The icon of a topic that ductor opened shows the topic's state. Short states are not shown, and it changes at most
// twice a minute.
func TestAnIconSaysWhatIsDone(t *testing.T) {
	icons(t, func(c *chat, start func() *Icons) {
		i := start()
		if i.Follow(turn(ours)) != nil {
			t.Error("a topic of a user is watched")
		}
		if err := i.Opened(t.Context(), ours); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.check(t, "3s 3 idle")

		i.Follow(turn(ours))
		time.Sleep(time.Second)
		i.Ended(ours, orchestrator.Outcome{State: orchestrator.TurnDone})
		time.Sleep(time.Minute)
		c.check(t, "3s 3 idle")

		k := i.Follow(turn(ours)) // at 2m1s
		time.Sleep(10 * time.Second)
		k.Observe(cli.ApprovalAsked{ID: "a"})
		k.Observe(cli.QuestionAsked{ID: "q"})
		time.Sleep(time.Second)
		k.Observe(cli.ApprovalWithdrawn{ID: "a"})
		time.Sleep(time.Minute)
		c.check(t, "3s 3 idle", "2m4s 3 working", "2m34s 3 waiting")
		k.Observe(cli.ApprovalWithdrawn{ID: "q"}) // at 3m12s
		time.Sleep(4 * time.Second)
		i.Ended(ours, orchestrator.Outcome{State: orchestrator.TurnFailed})
		time.Sleep(time.Minute)
		c.check(t, "3s 3 idle", "2m4s 3 working", "2m34s 3 waiting", "3m15s 3 working", "3m45s 3 failed")
	})
}

// After a restart icons soon become correct: a turn that continues keeps its icon, another topic becomes idle.
func TestIconsOutliveAProcess(t *testing.T) {
	icons(t, func(c *chat, start func() *Icons) {
		other := orchestrator.ConversationID{Chat: -7, Topic: 4}
		c.kept[ours], c.kept[other] = string(working), string(waiting)
		start().Follow(turn(ours))
		time.Sleep(time.Minute)
		c.check(t, "30s 4 idle")
		if c.kept[other] != string(idle) {
			t.Errorf("it keeps %v", c.kept)
		}
	})
}

// A deleted topic is forgotten. A forbidden change is not retried, and a failed one is.
func TestIconsThatCannotBeChanged(t *testing.T) {
	for fault, want := range map[tgapi.FaultKind][]string{
		tgapi.TopicGone:    {"30s 3 idle"},
		tgapi.NoTopicRight: {"30s 3 idle"},
		tgapi.ServerFault:  {"30s 3 idle", "1m0s 3 idle", "1m30s 3 idle"},
	} {
		icons(t, func(c *chat, start func() *Icons) {
			c.kept[ours], c.fault = string(working), fault
			start()
			time.Sleep(100 * time.Second)
			c.check(t, want...)
			if _, kept := c.kept[ours]; kept == (fault == tgapi.TopicGone) {
				t.Errorf("%s: it keeps %v", fault, c.kept)
			}
		})
	}
}
