package realagent

import (
	"os"
	"path/filepath"
	"testing"
)

// Gemini is the installed Gemini CLI, whose model's API is at baseURL. It is a program of Node's, so Path and Npm
// are the same. Where it is not installed the test is skipped, or fails if CI=true.
func Gemini(t testing.TB, baseURL string) CLI {
	t.Helper()
	program := filepath.Join(".bin", "gemini")
	c := newCLI(t, "Gemini", program, program)
	home := filepath.Join(c.Home, ".gemini")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatalf("make Gemini's home: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(geminiSettings), 0o600); err != nil {
		t.Fatalf("write Gemini's settings: %v", err)
	}
	c.set(map[string]string{"GEMINI_API_KEY": Key, "GOOGLE_GEMINI_BASE_URL": baseURL})
	return c
}

const geminiSettings = `{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}
`
