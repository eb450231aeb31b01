package real

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // to read ductor's database from outside

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// settle waits until ductor has nothing to do. If final is true, users also decide all open requests, and press the
// button "Show again" of each answer that may be incomplete.
func (o *ordeal) settle(most time.Duration, final bool) error {
	if final {
		if err := o.awaitPoll(); err != nil {
			return err
		}
	}
	var owed, before string
	deadline := time.Now().Add(most)
	for ; time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if final && o.answerAll() {
			continue
		}
		if owed = o.remainingWork(final); owed == "" {
			return nil
		}
		if owed != before { // ductor has made progress
			o.note("owed: %s", owed)
			before = owed
			if final {
				deadline = time.Now().Add(most)
			}
		}
		if final && !o.up() { // ductor has ended, for example after an error of the disk
			if err := o.awaitPoll(); err != nil {
				return err
			}
		}
	}
	if final {
		o.dump()
		err := errors.Join(fmt.Errorf("all does not come to rest: %s; the log of ductor has its goroutines", owed),
			o.end(scenario.Stop{How: scenario.Crash}))
		// o.end has started ductor again. Wait until it has nothing to do, so that the caller can end it normally.
		return errors.Join(err, o.settle(patience, false))
	}
	return fmt.Errorf("not at rest: %s", owed)
}

type messageKey struct {
	chat telegram.ChatID
	id   telegram.MessageID
}

// answerAll makes users answer all requests and questions by pressing buttons. It returns false if no message asked for
// an answer.
func (o *ordeal) answerAll() (pressed bool) {
	for name, chat := range o.places.chats {
		// In a group, only the user who started the turn may decide a request. Try both users, because either of them
		// may have started the turn.
		users := []scenario.Person{scenario.Owner, scenario.Ann}
		if chat.Person() != nil {
			users = []scenario.Person{scenario.Person(name)}
		}
		for _, m := range chat.View().FromBot() {
			for _, button := range []scenario.Button{scenario.AllowOnce, "approval.deny", "approval.no-answer-button",
				scenario.ShowAgain} {
				label := labelOf(m, button, false)
				key := messageKey{m.Chat, m.ID}
				if label == "" || o.again[key] {
					continue
				}
				o.again[key], pressed = true, true
				for _, by := range users {
					o.note("%s presses %q of %d", by, label, m.ID)
					o.press(by, m, label, true)
				}
			}
		}
	}
	o.pressing.Wait()
	return pressed
}

// quiet is how long Telegram must get no calls except polls. It is longer than the pause between two edits of a
// message.
const quiet = 1500 * time.Millisecond

// remainingWork describes the work that ductor still has to do, or returns "".
func (o *ordeal) remainingWork(final bool) string {
	if n := o.srv.PendingUpdates(); n > 0 {
		return fmt.Sprintf("%d updates are not acknowledged", n)
	}
	if what, err := o.unfinished(final); what != "" || err != nil {
		return fmt.Sprintf("%s %v", what, err)
	}
	if n, err := outboxWaiting(); n > 0 || err != nil {
		return fmt.Sprintf("%d calls wait in the outbox %v", n, err)
	}
	last := o.srv.Calls(func(c telegram.Call) bool { return c.Method != "getUpdates" })
	if n := len(last); n > 0 && time.Since(last[n-1].Done) < quiet {
		return "Telegram heard of it a moment ago"
	}
	return ""
}

// outboxWaiting returns how many calls to Telegram wait in ductor.
func outboxWaiting() (n int, err error) {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://" + monitor + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "ductor_outbox_waiting %d", &n); err == nil {
			return n, nil
		}
	}
	return 0, errors.Join(errors.New("no count of the outbox"), lines.Err())
}

// unfinished describes unfinished work in the database. If final is false and a request of an agent is open, unfinished
// ignores turns and requests: users may decide them in a later step.
func (o *ordeal) unfinished(final bool) (what string, err error) {
	db, err := sql.Open("sqlite3", "file:"+o.database()+"?mode=ro")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	open := ` AND NOT EXISTS (SELECT 1 FROM asks WHERE state = 'open')`
	if final {
		open = ""
	}
	var left []string
	for _, query := range []string{
		`inbox WHERE handled = 0`, `messages WHERE content IS NOT NULL`, `turns WHERE delivered = 0` + open,
		`asks WHERE state = 'open'` + open,
	} {
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM ` + query).Scan(&n); err != nil {
			return "", err
		}
		if n > 0 {
			left = append(left, fmt.Sprintf("%d of %s", n, query))
		}
	}
	return strings.Join(left, ", "), nil
}
