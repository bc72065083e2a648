package tags

// Members returns what tells whether a series of a bucket is in a collection, by its key.
func Members(x *Index, collection []byte, bucket uint64) func(key []byte) bool {
	var codec rowCodec
	var r row
	return func(key []byte) bool {
		x.mu.RLock()
		defer x.mu.RUnlock()
		c, ok := x.collections.find(collection)
		b, known := x.buckets.of[bucket]
		if !ok || !known {
			return false
		}
		id, ok := x.find(seriesHash(bucket, key), b, c, key)
		if !ok {
			return false
		}
		codec.decode(&r, x.rows.get(x.at[id]), x.nodes.ids)
		return r.visible()
	}
}
