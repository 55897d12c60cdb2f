"""A name that would do harm wherever it is not taken as text."""

HOSTILE = "</title></text><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
