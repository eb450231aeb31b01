package realagent

import (
	"os"
	"path/filepath"
	"testing"
)

// Copilot returns the installed GitHub Copilot CLI, configured to use the model API at baseURL. Copilot treats this API
// as the user's own model provider, which needs no log-in. If Copilot is not installed, the test is skipped, or fails
// if CI=true.
//
// On its first run, the native program unpacks 235 MB into a cache that all tests share.
func Copilot(t testing.TB, baseURL string) CLI {
	t.Helper()
	c := newCLI(t, "GitHub Copilot CLI",
		filepath.Join("@github", "copilot-"+platform(), "copilot"), filepath.Join(".bin", "copilot"))
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	c.set(map[string]string{
		"COPILOT_PKG_CACHE_HOME":    filepath.Join(cache, "ductor-test-copilot"),
		"COPILOT_OFFLINE":           "true",
		"COPILOT_AUTO_UPDATE":       "false",
		"COPILOT_PROVIDER_BASE_URL": baseURL + "/v1",
		"COPILOT_PROVIDER_API_KEY":  Key,
		"COPILOT_PROVIDER_WIRE_API": "responses",
		"COPILOT_MODEL":             "gpt-5.2",
	})
	return c
}
