package telegram

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// method is a method of the Bot API. Its handler holds the lock of the server, unless the method waits.
type method struct {
	name  string
	cost  func(*request) int // how many calls the rate limits count: 1, or the number of files in an album; nil means 0
	run   func(*request) (any, *Error)
	waits func(context.Context, *request) (any, *Error)
}

func one(*request) int { return 1 }

// methodTable returns all methods of the server. The key is the name in lower case.
func (s *Server) methodTable() map[string]method {
	table := map[string]method{}
	free := func(name string, run func(*request) (any, *Error)) {
		table[lower(name)] = method{name: name, run: run}
	}
	counted := func(name string, run func(*request) (any, *Error)) {
		table[lower(name)] = method{name: name, run: run, cost: one}
	}
	table["getupdates"] = method{name: "getUpdates", waits: s.getUpdates}
	table["sendmediagroup"] = method{name: "sendMediaGroup", run: s.sendMediaGroup, cost: albumSize}

	free("getMe", s.getMe)
	free("setWebhook", s.setWebhook)
	free("deleteWebhook", s.deleteWebhook)
	free("getWebhookInfo", s.getWebhookInfo)
	free("setMyCommands", s.setMyCommands)
	free("getMyCommands", s.getMyCommands)
	free("deleteMyCommands", s.deleteMyCommands)
	free("answerCallbackQuery", s.answerCallbackQuery)
	free("getFile", s.getFile)
	free("getChat", s.getChat)
	free("getChatMember", s.getChatMember)
	free("getForumTopicIconStickers", s.getForumTopicIconStickers)

	counted("sendMessage", s.sendMessage)
	counted("sendRichMessage", s.sendRichMessage)
	counted("editMessageText", s.editMessageText)
	counted("editMessageCaption", s.editMessageCaption)
	counted("editMessageReplyMarkup", s.editMessageReplyMarkup)
	counted("deleteMessage", s.deleteMessage)
	counted("deleteMessages", s.deleteMessages)
	counted("forwardMessage", s.forwardMessage)
	counted("copyMessage", s.copyMessage)
	counted("sendPhoto", s.sendPhoto)
	counted("sendDocument", s.sendDocument)
	counted("sendChatAction", s.sendChatAction)
	counted("sendMessageDraft", s.sendMessageDraft)
	counted("setMessageReaction", s.setMessageReaction)
	counted("pinChatMessage", s.pinChatMessage)
	counted("unpinChatMessage", s.unpinChatMessage)
	counted("createForumTopic", s.createForumTopic)
	counted("editForumTopic", s.editForumTopic)
	counted("closeForumTopic", s.closeForumTopic)
	counted("reopenForumTopic", s.reopenForumTopic)
	counted("deleteForumTopic", s.deleteForumTopic)
	for _, name := range s.opts.Without {
		delete(table, lower(name))
	}
	return table
}

func (s *Server) has(name string) bool {
	_, known := s.methods[lower(name)]
	return known
}

// rawResult is a result that is already JSON. It may be invalid.
type rawResult string

// serveMethod handles a call: it parses the request, applies faults and rate limits, runs the method, records the call
// and writes the response.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	call := Call{At: s.now(), Method: name}
	req, failure := decodeRequest(r, name)
	m, known := s.methods[req.method]
	if known {
		call.Method = m.name
	}
	call.fill(req)
	fault := s.faults.count(call)
	if fault.before(r.Context(), s.base) {
		call.Fault = fault.Kind
		s.finish(call, nil, nil)
		panic(http.ErrAbortHandler)
	}
	if answer, ok := fault.errorPage(); ok {
		call.Fault, call.Code = fault.Kind, answer.status
		call.RetryAfter = answer.retryAfter
		s.finish(call, nil, nil)
		answer.write(w)
		return
	}
	var result any
	if failure == nil {
		result, failure = s.run(r.Context(), m, known, &req)
	}
	call.Fault = fault.Kind
	body := encodeAnswer(result, failure)
	s.finish(call, result, failure)
	fault.wait(fault.Late, r.Context(), s.base)
	if !fault.spoilResponse(w, body) {
		writeAnswer(w, body, failure)
	}
}

func (s *Server) run(ctx context.Context, m method, known bool, req *request) (any, *Error) {
	if !known {
		return nil, &Error{Code: http.StatusNotFound, Description: "Not Found: method not found"}
	}
	if m.waits != nil {
		return m.waits(ctx, req)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.cost != nil {
		if wait := s.limits.spend(s.now(), s.chats[ChatID(req.integer("chat_id"))], m.cost(req)); wait > 0 {
			return nil, tooManyRequests(wait)
		}
	}
	return m.run(req)
}

// answer is the JSON object around each result of the Bot API.
type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result,omitempty"`
	ErrorCode   int             `json:"error_code,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  *parameters     `json:"parameters,omitempty"`
}

type parameters struct {
	RetryAfter int    `json:"retry_after,omitempty"`
	MigrateTo  ChatID `json:"migrate_to_chat_id,omitempty"`
}

func encodeAnswer(result any, failure *Error) []byte {
	if failure != nil {
		a := answer{ErrorCode: failure.Code, Description: failure.Description}
		if failure.RetryAfter > 0 || failure.MigrateTo != 0 {
			a.Parameters = &parameters{failure.RetryAfter, failure.MigrateTo}
		}
		return mustJSON(a)
	}
	var body []byte
	if raw, ok := result.(rawResult); ok {
		body = []byte(raw)
	} else {
		body = mustJSON(result)
	}
	out := make([]byte, 0, len(body)+24)
	out = append(out, `{"ok":true,"result":`...)
	out = append(out, body...)
	return append(out, '}')
}

// mustJSON encodes a value of this package. Encoding these types never fails.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("telegram: encode a wire type: " + err.Error())
	}
	return data
}

func writeAnswer(w http.ResponseWriter, body []byte, failure *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	status := http.StatusOK
	if failure != nil {
		status = failure.Code
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

func writeError(w http.ResponseWriter, failure *Error) {
	writeAnswer(w, encodeAnswer(nil, failure), failure)
}
