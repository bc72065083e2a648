package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"dalmatiner/client"
)

// An acknowledged stream tells when points are durable. A connection that carries
// a stream carries nothing else, so reads have one of their own.
func Example() {
	addr, stop := client.StartServer() // stands for a node
	defer stop()
	ctx := context.Background()
	key, err := client.Key("web", "eu", "requests")
	if err != nil {
		log.Fatal(err)
	}

	sender, err := client.Dial(ctx, addr)
	if err != nil {
		log.Fatal(err)
	}
	defer sender.Close()
	// slots of 1 s, kept for ever
	if _, err := sender.AddBucket(ctx, "shop", 1000, 604_800, 0); err != nil {
		log.Fatal(err)
	}
	stream, err := sender.OpenAckStream("shop")
	if err != nil {
		log.Fatal(err)
	}
	slot := time.Now().Add(-time.Minute).Unix()
	if err := stream.Points(key, slot, client.Int(120), client.Float(0.5)); err != nil {
		log.Fatal(err)
	}
	if _, err := stream.FlushAck(); err != nil {
		log.Fatal(err)
	}
	ack, err := stream.ReadAck()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("received", ack.Received, "refused", ack.Refused)

	reader, err := client.Dial(ctx, addr)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Close()
	words, err := reader.Get(ctx, "shop", key, slot, 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range words {
		fmt.Println(client.Value(w))
	}
	// Output:
	// received 2 refused 0
	// 120
	// 0.5
	// <nil>
}
