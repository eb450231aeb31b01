package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

func turn(id cli.TurnID, state orchestrator.TurnState) orchestrator.Turn {
	return orchestrator.Turn{ID: id, State: state, Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: 7}}}
}

// fromBot lists the bot's visible messages.
func (h *botRig) fromBot() []string {
	synctest.Wait()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	var texts []string
	for _, m := range h.chat.View().FromBot() {
		texts = append(texts, m.Text)
	}
	return texts
}

func wantTexts(t *testing.T, h *botRig, want ...string) {
	t.Helper()
	got := h.fromBot()
	if len(got) != len(want) {
		t.Fatalf("the chat shows %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("the chat shows %q, want %q", got, want)
		}
	}
}

func TestQueueCardGoesWhenTheTurnRuns(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		b.Chat().Queued(turn("a", orchestrator.TurnQueued), 2)
		wantTexts(t, h, "⏳ Queued, 2 ahead.")
		card, _ := h.chat.View().Find("Queued")
		if !card.HasButton("✖ Cancel") || !card.HasButton("↪ Steer") || !card.HasButton("⚡ Interrupt") || card.Keyboard[0][2].Data != "c:a" {
			t.Errorf("buttons %+v", card.Keyboard)
		}
		b.Chat().Unqueued(turn("a", orchestrator.TurnRunning))
		wantTexts(t, h)
	})
}

// A message that names another agent, and the prompt of a job, cannot be added to the running turn.
func TestOnlyAMessageThatMayJoinTheTurnOffersToSteer(t *testing.T) {
	for name, change := range map[string]func(*orchestrator.Turn){
		"":        func(*orchestrator.Turn) {},
		"another": func(t *orchestrator.Turn) { t.Wants.Agent = "codex" },
		"job":     func(t *orchestrator.Turn) { t.Prompt.Rights.Of = orchestrator.RightsOfJob },
		"part":    func(t *orchestrator.Turn) { t.Wants.Agent, t.Prompt.PartOf = "codex", 3 },
	} {
		simulated(t, func(t *testing.T, h *botRig) {
			b, _ := h.serve(t)
			waiting := turn("a", orchestrator.TurnQueued)
			change(&waiting)
			b.Chat().Queued(waiting, 1)
			wantTexts(t, h, "⏳ Queued, next in line.")
			card, _ := h.chat.View().Find("Queued")
			if offers := card.HasButton("↪ Steer"); offers != (name == "" || name == "part") {
				t.Errorf("%q: Steer is offered: %v", name, offers)
			}
			if !card.HasButton("⚡ Interrupt") || !card.HasButton("✖ Cancel") {
				t.Errorf("%q: buttons %+v", name, card.Keyboard)
			}
		})
	}
}

func TestQueueCardOfACancelledTurn(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		b.Chat().Queued(turn("a", orchestrator.TurnQueued), 1)
		wantTexts(t, h, "⏳ Queued, next in line.")
		b.Chat().Unqueued(turn("a", orchestrator.TurnCancelled))
		wantTexts(t, h, "✖ Cancelled: this message will not run.")
		if m, _ := h.chat.View().Find("Cancelled"); len(m.Keyboard) > 0 {
			t.Error("the button stays")
		}
	})
}

func TestQueueCardsMoveUp(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		for i, id := range []cli.TurnID{"a", "b", "c"} {
			b.Chat().Queued(turn(id, orchestrator.TurnQueued), i+1)
		}
		wantTexts(t, h, "⏳ Queued, next in line.", "⏳ Queued, 2 ahead.", "⏳ Queued, 3 ahead.")
		b.Chat().Unqueued(turn("a", orchestrator.TurnRunning))
		wantTexts(t, h, "⏳ Queued, next in line.", "⏳ Queued, 3 ahead.")
		b.Chat().Unqueued(turn("c", orchestrator.TurnCancelled))
		wantTexts(t, h, "⏳ Queued, next in line.", "✖ Cancelled: this message will not run.")
		b.Chat().Unqueued(turn("b", orchestrator.TurnRunning))
		wantTexts(t, h, "✖ Cancelled: this message will not run.")
	})
}

// If a user cancels a turn, the cards behind it move up, but no more of them than the chat's budget allows.
func TestQueueCardsMoveUpBehindACancelledOne(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		for i, id := range []cli.TurnID{"a", "b", "c", "d", "e", "f", "g"} {
			b.Chat().Queued(turn(id, orchestrator.TurnQueued), i+1)
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		b.Chat().Unqueued(turn("b", orchestrator.TurnCancelled))
		wantTexts(t, h, "⏳ Queued, next in line.", "✖ Cancelled: this message will not run.", "⏳ Queued, 2 ahead.",
			"⏳ Queued, 3 ahead.", "⏳ Queued, 4 ahead.", "⏳ Queued, 5 ahead.", "⏳ Queued, 7 ahead.")
	})
}

func TestQueueCardThatIsOverBeforeItIsShown(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		// The orchestrator may start a turn before it reports that the turn waits.
		b.Chat().Unqueued(turn("a", orchestrator.TurnRunning))
		b.Chat().Queued(turn("a", orchestrator.TurnQueued), 1)
		wantTexts(t, h)
		// Or while the message is being sent.
		h.srv.Inject(telegram.Fault{Method: "sendMessage", Delay: 3 * time.Second})
		b.Chat().Queued(turn("b", orchestrator.TurnQueued), 1)
		synctest.Wait()
		b.Chat().Unqueued(turn("b", orchestrator.TurnRunning))
		wantTexts(t, h)
	})
}

func TestQueueCardOfBeforeARestart(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, stop := h.serve(t)
		b.Chat().Queued(turn("a", orchestrator.TurnQueued), 1)
		wantTexts(t, h, "⏳ Queued, next in line.")
		must(t, stop())
		b, _ = h.serve(t)
		wantTexts(t, h, "⏳ Queued, next in line.")
		b.Chat().Unqueued(turn("a", orchestrator.TurnRunning))
		wantTexts(t, h)
	})
}

func TestQueueCardThatAPersonDeleted(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		b.Chat().Queued(turn("a", orchestrator.TurnQueued), 2)
		wantTexts(t, h, "⏳ Queued, 2 ahead.")
		card, _ := h.chat.View().Find("Queued")
		h.ann.Delete(card)
		b.Chat().Unqueued(turn("a", orchestrator.TurnCancelled))
		wantTexts(t, h)
	})
}

// A change during the sending of a card is shown after it.
func TestQueueCardThatMovesUpBeforeItIsShown(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		b.Chat().Queued(turn("a", orchestrator.TurnQueued), 1)
		wantTexts(t, h, "⏳ Queued, next in line.")
		h.srv.Inject(telegram.Fault{Method: "sendMessage", Delay: 3 * time.Second})
		b.Chat().Queued(turn("b", orchestrator.TurnQueued), 2)
		synctest.Wait()
		b.Chat().Unqueued(turn("a", orchestrator.TurnRunning))
		wantTexts(t, h, "⏳ Queued, next in line.")
	})
}

// A notice about an agent that is logged out has the button of /model.
func TestANoticeLogsAnAgentIn(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		b, _ := h.serve(t)
		for id, button := range map[orchestrator.LogInID]bool{"claude@work@": true, "": false} {
			m := b.Chat().Composed(orchestrator.ConversationID{Chat: 7}, "logged out", id)
			if strings.Contains(string(m.Content), tgapi.LogInAction+":claude@work@") != button {
				t.Errorf("%q: %s", id, m.Content)
			}
		}
	})
}
