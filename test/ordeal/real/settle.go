package real

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // to look into ductor's database from outside

	"ductor/internal/sim/telegram"
)

// settle ends every fault and waits until ductor has nothing left to do. Users answer what agents ask, and ask once for
// each answer that may not have arrived.
func (o *ordeal) settle() error {
	o.line.set(fair)
	if err := errors.Join(o.disk.thaw(), o.disk.clear()); err != nil {
		return err
	}
	o.unload()
	o.unload = func() {}
	if err := o.awaitPoll(); err != nil {
		return err
	}
	var owed string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if o.answerAll() {
			continue
		}
		if owed = o.owed(); owed == "" {
			return nil
		}
		if !o.up() { // it ended by itself, as over a failed disk
			if err := o.awaitPoll(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("still owed: %s; goroutines are in the log%s", owed, o.dump())
}

// answerAll has users press what waits for them. It reports whether there was anything.
func (o *ordeal) answerAll() (pressed bool) {
	for _, chat := range o.srv.Chats() {
		for _, m := range chat.View().FromBot() {
			switch {
			case m.HasButton("✅ Allow once"):
				pressed = o.press(chat, m, "✅ Allow once") || pressed
			case m.HasButton(showAgain) && !o.again[m.ID]:
				if o.press(chat, m, showAgain) {
					o.again[m.ID], pressed = true, true
				}
			}
		}
	}
	return pressed
}

const (
	showAgain = "👁 Show again"
	runAgain  = "🔁 Run again"
)

// quiet is how long Telegram must have heard nothing but polls. It is longer than any pause between two edits.
const quiet = 1500 * time.Millisecond

// owed says what ductor still has to do; empty for nothing.
func (o *ordeal) owed() string {
	if n := o.srv.PendingUpdates(); n > 0 {
		return fmt.Sprintf("%d updates are not acknowledged", n)
	}
	if what, err := o.unfinished(); what != "" || err != nil {
		return fmt.Sprintf("%s %v", what, err)
	}
	last := o.srv.Calls(func(c telegram.Call) bool { return c.Method != "getUpdates" })
	if n := len(last); n > 0 && time.Since(last[n-1].Done) < quiet {
		return "Telegram heard of it a moment ago"
	}
	return ""
}

// unfinished reads from the database what is not finished there.
func (o *ordeal) unfinished() (what string, err error) {
	db, err := sql.Open("sqlite3", "file:"+o.database()+"?mode=ro")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var left []string
	for name, query := range map[string]string{
		"updates":  `SELECT count(*) FROM inbox WHERE handled = 0`,
		"turns":    `SELECT count(*) FROM turns WHERE delivered = 0`,
		"messages": `SELECT count(*) FROM messages WHERE content IS NOT NULL`,
		"asks":     `SELECT count(*) FROM asks WHERE state = 'open'`,
	} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil {
			return "", err
		}
		if n > 0 {
			left = append(left, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(left, ", "), nil
}
