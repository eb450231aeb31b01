package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

type answers map[string]int

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := a[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	if code == 0 {
		return nil, errors.New("away")
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// Each call counts by method and result. Unknown names, and names beyond the limit, share one label.
func TestCallsAreCounted(t *testing.T) {
	c := NewCalls()
	tr := c.Transport(answers{"sendMessage": 200, "editMessageText": 429, "getUpdates": 502, "getMe": 401, "photo.jpg": 200})
	call := func(path string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://t"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := tr.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	}
	for _, path := range []string{
		"/bot1:token/sendMessage", "/bot1:token/sendMessage", "/bot1:token/editMessageText", "/bot1:token/getUpdates", "/bot1:token/getMe",
		"/bot1:token/setMyCommands", "/file/bot1:token/photos/photo.jpg", "/bot1:token/1:token",
	} {
		call(path)
	}
	err := testutil.CollectAndCompare(c.total, strings.NewReader(`
# HELP ductor_telegram_calls_total Calls to Telegram, by method and what became of them.
# TYPE ductor_telegram_calls_total counter
ductor_telegram_calls_total{method="sendMessage",result="ok"} 2
ductor_telegram_calls_total{method="editMessageText",result="rate_limited"} 1
ductor_telegram_calls_total{method="getUpdates",result="server_error"} 1
ductor_telegram_calls_total{method="getMe",result="refused"} 1
ductor_telegram_calls_total{method="setMyCommands",result="unreachable"} 1
ductor_telegram_calls_total{method="file",result="ok"} 1
ductor_telegram_calls_total{method="other",result="unreachable"} 1
`))
	if err != nil {
		t.Error(err)
	}
	for i := range 200 {
		call(fmt.Sprintf("/bot1:token/m%c%c", 'a'+i%26, 'a'+i/26))
	}
	if n := testutil.CollectAndCount(c.total); n > maxMethods+3 {
		t.Errorf("%d series", n)
	}
}
