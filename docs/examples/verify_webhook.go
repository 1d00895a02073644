package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Event is what a delivery tells of.
type Event struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	AgentID string          `json:"agent_id"`
	Data    json.RawMessage `json:"data"`
}

// Verify gives the event of a delivery, or an error if it is not genuine.
func Verify(secret string, header http.Header, rawBody []byte) (*Event, error) {
	if secret == "" {
		return nil, errors.New("no secret is set")
	}
	timestamp := header.Get("Svc-Timestamp")
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil {
		return nil, errors.New("no timestamp")
	}
	if age := time.Now().Unix() - int64(seconds); age > 300 || age < -300 {
		return nil, errors.New("too old or too new")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(rawBody)
	expected := []byte("sha256=" + hex.EncodeToString(mac.Sum(nil)))
	genuine := false
	for _, given := range strings.SplitN(header.Get("Svc-Signature"), ",", 4) {
		genuine = hmac.Equal([]byte(given), expected) || genuine
	}
	if !genuine {
		return nil, errors.New("no signature fits")
	}
	var event Event
	if err := json.Unmarshal(rawBody, &event); err != nil {
		return nil, err
	}
	if event.ID != header.Get("Svc-Delivery-Id") || event.Type != header.Get("Svc-Event-Type") {
		return nil, errors.New("headers of another delivery")
	}
	return &event, nil
}
