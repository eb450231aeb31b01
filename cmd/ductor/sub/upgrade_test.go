package sub

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ductor/internal/config"
)

// checkUpgrade runs `ductor upgrade` against a server with the given answer.
func checkUpgrade(t *testing.T, version string, status int, answer string, args ...string) (string, error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer)) // an error means that the client left
	}))
	defer srv.Close()
	cfg := config.Default()
	if answer != "" {
		cfg.Upgrade.URL = srv.URL
	}
	cmd := Upgrade(func(*cobra.Command) func(...string) (config.Config, error) {
		return func(...string) (config.Config, error) { return cfg, nil }
	}, version)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{}, args...)) // nil stands for the arguments of the test program
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestUpgradeSaysWhetherANewerReleaseIsThere(t *testing.T) {
	for _, c := range []struct {
		name, version, answer string
		status                int
		says                  string
		newer                 bool
	}{
		{"newer", "1.2.3", `{"tag_name":"v1.10.0","url":"elsewhere"}`, 200,
			"this is ductor 1.2.3; the latest release is 1.10.0", true},
		{"the same", "1.2.3", "v1.2.3\n", 200, "it is up to date, the latest release is 1.2.3", false},
		{"older", "2.0.0 0123456789ab", "1.9.9\nsha256 of it", 200, "it is up to date, the latest release is 1.9.9",
			false},
		{"a candidate", "1.2.0-rc.1", "1.2.0", 200, "the latest release is 1.2.0", true},
		{"from source", "dev 0123456789ab", "1.2.0", 200, "which is no release; the latest release is 1.2.0", false},
		{"no version", "1.2.3", "\x1b[31mwelcome", 200, "contains no version", false},
		{"no answer", "1.2.3", "gone", 404, "the server answers 404", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := checkUpgrade(t, c.version, c.status, c.answer, "--check")
			if !strings.Contains(out, c.says) || strings.Contains(out, "\x1b") || errors.Is(err, ErrNewer) != c.newer {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	if _, err := checkUpgrade(t, "1.2.3", 200, ""); err == nil || !strings.Contains(err.Error(), "--check") {
		t.Errorf("without --check: %v", err)
	}
	if out, err := checkUpgrade(t, "1.2.3", 200, "", "--check"); err != nil ||
		!strings.Contains(out, "this is ductor 1.2.3; set upgrade.url") {
		t.Errorf("without an address: %q, %v", out, err)
	}
}
