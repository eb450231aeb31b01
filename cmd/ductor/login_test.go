package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// accounts is a log-in server that accepts a real agent after the code was entered.
type accounts struct {
	*httptest.Server
	entered atomic.Bool
}

func newAccounts(t *testing.T) *accounts {
	a := &accounts{}
	token := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil,
		`{"exp":%d,"email":"a@b.example","https://api.openai.com/auth":{"chatgpt_account_id":"acc","chatgpt_plan_type":"pro"}}`, time.Now().Add(time.Hour).Unix())) + ".c2ln"
	mux := http.NewServeMux()
	mux.HandleFunc("/api/accounts/deviceauth/usercode", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"device_auth_id":"dev","user_code":"ABCD-12345","interval":"1"}`)
	})
	mux.HandleFunc("/api/accounts/deviceauth/token", func(w http.ResponseWriter, _ *http.Request) {
		if !a.entered.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"authorization_code":"code","code_challenge":"x","code_verifier":"y"}`)
	})
	mux.HandleFunc("/oauth/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w,
			`{"id_token":%q,"access_token":%q,"refresh_token":"refresh","token_type":"Bearer","expires_in":3600}`,
			token, token)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// A real Codex without a log-in offers to log in. Only the owner's chat gets the code. After it was entered, the
// agent works, and a press runs the prompt.
func TestARealAgentIsLoggedInFromTheChat(t *testing.T) {
	accounts := newAccounts(t)
	town, _ := realSurroundings(t, "codex", func(c *config.Config) {
		program := filepath.Join(t.TempDir(), "codex")
		script := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in login) exec %s \"$@\" --experimental_issuer %s;; esac\nexec %s \"$@\"\n",
			c.Agents.Codex.Path, accounts.URL, c.Agents.Codex.Path)
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		c.Agents.Codex.Path = program
	})
	for _, key := range []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_SIM_KEY"} {
		t.Setenv(key, "")
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("CODEX_HOME"), "config.toml"),
		[]byte("check_for_update_on_startup = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	town.start()
	town.say("hello")
	card := town.awaitButton("🔑 Log in to Codex")
	if !strings.Contains(card.Text, "Codex is not logged in") {
		t.Errorf("the card says %q", card.Text)
	}
	for range 2 { // the second press has no effect
		if a := town.pressOn(card, "🔑 Log in to Codex"); !strings.Contains(a.Text, "owner's private chat") {
			t.Errorf("the press is answered with %q", a.Text)
		}
	}
	if m := town.await("ABCD-12345"); !strings.Contains(m.Text, accounts.URL+"/codex/device") {
		t.Errorf("the owner is told %q", m.Text)
	}
	accounts.entered.Store(true)
	town.await("Codex is logged in.")
	asked := 0
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "ABCD-12345") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the code came %d times", asked)
	}
	if b, err := os.ReadFile(filepath.Join(os.Getenv("CODEX_HOME"), "auth.json")); err != nil ||
		!strings.Contains(string(b), "refresh") {
		t.Errorf("what Codex keeps of the log-in: %v", err)
	}
	town.say("/model")
	town.awaitMessage(func(m telegram.Message) bool { return strings.Contains(m.Text, "odel of Codex") })
}
