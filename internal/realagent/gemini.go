package realagent

import (
	"path/filepath"
	"testing"
)

// Gemini returns the installed Gemini CLI, configured to use the model API at baseURL. If it is not installed, the test
// is skipped, or fails if CI=true. Path and Npm are the same, because Gemini CLI has no native program.
func Gemini(t testing.TB, baseURL string) CLI {
	t.Helper()
	program := filepath.Join(".bin", "gemini")
	c := newCLI(t, "Gemini", program, program)
	writeHome(t, c, filepath.Join(".gemini", "settings.json"), geminiSettings)
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
